"""A lease is held for as long as the block lasts, and not a moment longer."""

from collections.abc import AsyncIterator
from datetime import timedelta
from threading import enumerate as threads

import pytest
import pytest_asyncio

from durable_pg import AsyncDurable, AsyncIdentity
from durable_pg.errors import LeaseLost, RunSettled
from durable_pg.types import Session
from tests.client.disturbing import wait_until_async
from tests.client.leases import lease_of, let_the_lease_run_out, statuses, the_run
from tests.client.provider_async import AsyncProvider
from tests.support.rented import Rented, nothing_written, stored

SHORT = timedelta(seconds=0.6)


@pytest_asyncio.fixture
async def me_async(db: Rented) -> AsyncIterator[AsyncIdentity]:
    async with AsyncDurable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest_asyncio.fixture
async def session_async(me_async: AsyncIdentity) -> Session:
    return await me_async.open_session("support", "s-1")


async def test_a_lease_is_renewed_while_a_tool_takes_longer_than_it(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    async def slow(key: str) -> str:
        first = lease_of(db, run.run_uid)
        await wait_until_async(lambda: lease_of(db, run.run_uid) > first + 2 * SHORT)
        return "done"

    async with me_async.run(session_async, "inv-1", lease=SHORT) as run:
        assert await run.effect("refund", call=slow) == "done"
        await run.append_event("agent", 1)
    assert (the_run(db)["status"], statuses(db)) == ("succeeded", ["succeeded"])


async def test_a_refused_renewal_stops_the_run_before_anything_is_sent(
    db: Rented, me_async: AsyncIdentity, session_async: Session, caplog: pytest.LogCaptureFixture
) -> None:
    provider = AsyncProvider()
    with pytest.raises(LeaseLost) as lost:
        async with me_async.run(session_async, "inv-1", lease=SHORT) as run:
            let_the_lease_run_out(db, run.run_uid)
            other = await me_async.start_run(session_async, "inv-1")
            await wait_until_async(lambda: "the lease of a run is lost" in caplog.text)
            with nothing_written(db), pytest.raises(LeaseLost):
                await run.effect("refund", call=provider)
    assert lost.value.call == "renew_lease"
    assert provider.keys == []
    assert (the_run(db)["status"], the_run(db)["attempt"]) == ("running", other.attempt)


async def test_a_run_that_is_called_off_is_noticed_by_its_renewal(
    db: Rented, me_async: AsyncIdentity, session_async: Session, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RunSettled) as settled:
        async with me_async.run(session_async, "inv-1", lease=SHORT) as run:
            await me_async.cancel_run(run.run_uid, "called off")
            await wait_until_async(lambda: "the lease of a run is lost: RunSettled" in caplog.text)
    assert settled.value.call == "renew_lease"


@pytest.mark.parametrize("ending", ["normal", "error", "fail", "cancel"])
async def test_nothing_renews_after_the_end(
    db: Rented, me_async: AsyncIdentity, session_async: Session, ending: str
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with me_async.run(session_async, "inv-1", lease=SHORT) as run:
            if ending == "fail":
                await run.fail()
            elif ending == "cancel":
                await run.cancel("off")
            elif ending == "error":
                raise ZeroDivisionError
        raise ZeroDivisionError
    assert [thread.name for thread in threads() if thread.name == "durable-pg renewal"] == []
    after = lease_of(db, run.run_uid)
    other = await me_async.open_session("support", "s-2")
    async with me_async.run(other, "inv-1", lease=SHORT) as run_of_other:
        first = lease_of(db, run_of_other.run_uid)
        await wait_until_async(lambda: lease_of(db, run_of_other.run_uid) > first)
    assert lease_of(db, run.run_uid) == after
    assert len(stored(db, "runs")) == 2
