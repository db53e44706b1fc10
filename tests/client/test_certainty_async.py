"""What looks certain and is not: no call of a tool follows from it."""

from collections.abc import AsyncIterator
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from durable_pg import AsyncDurable, AsyncIdentity, EffectFailed, Failed, Succeeded
from durable_pg.errors import EffectInFlight, EffectUnverified, WriteOnce
from durable_pg.types import Session
from tests.client.leases import statuses
from tests.client.provider_async import LOOK, AsyncProvider, Declined, leave_unverified_async
from tests.support.rented import Rented, stored

DAY = timedelta(days=1)


@pytest_asyncio.fixture
async def me_async(db: Rented) -> AsyncIterator[AsyncIdentity]:
    async with AsyncDurable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest_asyncio.fixture
async def session_async(me_async: AsyncIdentity) -> Session:
    return await me_async.open_session("support", "s-1")


@pytest.mark.parametrize("recorded", ["succeeded", "failed"])
async def test_what_a_verifier_saw_happen_is_not_called_whatever_is_recorded_meanwhile(
    db: Rented, me_async: AsyncIdentity, session_async: Session, recorded: Any
) -> None:
    await leave_unverified_async(me_async, session_async)
    provider = AsyncProvider()

    async def verify(_: str) -> Succeeded:
        (effect,) = await me_async.list_effects(status="unverified")
        await me_async.resolve_effect(effect, recorded, LOOK)
        return Succeeded({"id": "re_7"}, **LOOK)

    with pytest.raises(WriteOnce) if recorded == "failed" else nullcontext():
        async with me_async.run(session_async, "inv-1") as run:
            assert await run.effect("refund", call=provider, verify=verify) is None
    assert (statuses(db), provider.keys) == ([recorded], [])


async def test_a_verifier_that_saw_nothing_is_told_what_is_recorded_meanwhile(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    await leave_unverified_async(me_async, session_async)
    provider = AsyncProvider()

    async def verify(_: str) -> Failed:
        (effect,) = await me_async.list_effects(status="unverified")
        await me_async.resolve_effect(effect, "succeeded", LOOK, result=7)
        return Failed(channel="API", seen="none")

    async with me_async.run(session_async, "inv-1") as run:
        assert await run.effect("refund", call=provider, verify=verify) == 7
    assert (statuses(db), provider.keys) == (["succeeded"], [])


async def test_a_look_from_before_another_begin_is_refused(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    given: dict[str, Any] = {"intent": "refund:7", "provider_dedupes_for": DAY}
    await leave_unverified_async(me_async, session_async, **given)
    provider = AsyncProvider()
    looked = (await me_async.list_effects(status="unverified"))[0]
    with pytest.raises(ConnectionError):
        async with me_async.run(session_async, "inv-1") as run:
            await run.effect("refund", **given, call=AsyncProvider(ConnectionError("reset")))
    with pytest.raises(EffectInFlight):
        await me_async.resolve_effect(looked, "failed", LOOK)
    assert (statuses(db), provider.keys) == (["unverified"], [])


async def test_a_refusal_of_the_second_call_leaves_the_first_one_open(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    given: dict[str, Any] = {"intent": "refund:7", "provider_dedupes_for": DAY}
    await leave_unverified_async(me_async, session_async, **given)
    provider = AsyncProvider(Declined("no"))
    with pytest.raises(EffectUnverified) as unverified:
        async with me_async.run(session_async, "inv-1") as run:
            await run.effect("refund", **given, call=provider, failed_on=Declined)
    assert isinstance(unverified.value.__cause__, Declined)
    assert (statuses(db), len(provider.keys)) == (["unverified"], 1)


async def test_an_effect_inside_another_says_nothing_of_the_outer_one(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    """The flight is booked when the hotel is full."""
    with pytest.raises(EffectFailed):
        async with me_async.run(session_async, "inv-1") as run:

            async def flight(_: str) -> Any:
                return await run.effect("hotel", call=AsyncProvider(EffectFailed("full")))

            await run.effect("flight", call=flight)
    assert {row["tool"]: row["status"] for row in stored(db, "effects")} == {"flight": "unverified", "hotel": "failed"}


async def test_the_step_is_the_one_after_the_last_checkpoint(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    provider = AsyncProvider()
    async with me_async.run(session_async, "inv-1") as run:
        for done in (1, 2, 3):
            await run.effect("mail", call=provider)
            await run.checkpoint(done, {"done": done})
    assert sorted(row["step"] for row in stored(db, "effects")) == [1, 2, 3]
    assert len(provider.keys) == 3


async def test_a_call_that_takes_no_key_is_refused_before_anything_is_begun(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    keyless: Any = lambda: None  # noqa: E731
    async with me_async.run(session_async, "inv-1") as run:
        with pytest.raises(TypeError, match="one argument"):
            await run.effect("mail", call=keyless)
    assert stored(db, "effects") == []
