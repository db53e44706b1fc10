# Generated from test_renewal_async.py by tools/async_to_sync.py: change that.
"""A lease is held for as long as the block lasts, and not a moment longer."""

from collections.abc import Iterator
from datetime import timedelta
from threading import enumerate as threads

import pytest

from durable_pg import Durable, Identity
from durable_pg.errors import LeaseLost, RunSettled
from durable_pg.types import Session
from tests.client.disturbing import wait_until
from tests.client.leases import lease_of, let_the_lease_run_out, statuses, the_run
from tests.client.provider import Provider
from tests.support.rented import Rented, nothing_written, stored

SHORT = timedelta(seconds=0.6)


@pytest.fixture
def me(db: Rented) -> Iterator[Identity]:
    with Durable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest.fixture
def session(me: Identity) -> Session:
    return me.open_session("support", "s-1")


def test_a_lease_is_renewed_while_a_tool_takes_longer_than_it(db: Rented, me: Identity, session: Session) -> None:
    def slow(key: str) -> str:
        first = lease_of(db, run.run_uid)
        wait_until(lambda: lease_of(db, run.run_uid) > first + 2 * SHORT)
        return "done"

    with me.run(session, "inv-1", lease=SHORT) as run:
        assert run.effect("refund", call=slow) == "done"
        run.append_event("agent", 1)
    assert (the_run(db)["status"], statuses(db)) == ("succeeded", ["succeeded"])


def test_a_refused_renewal_stops_the_run_before_anything_is_sent(
    db: Rented, me: Identity, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    provider = Provider()
    with pytest.raises(LeaseLost) as lost, me.run(session, "inv-1", lease=SHORT) as run:
        let_the_lease_run_out(db, run.run_uid)
        other = me.start_run(session, "inv-1")
        wait_until(lambda: "the lease of a run is lost" in caplog.text)
        with nothing_written(db), pytest.raises(LeaseLost):
            run.effect("refund", call=provider)
    assert lost.value.call == "renew_lease"
    assert provider.keys == []
    assert (the_run(db)["status"], the_run(db)["attempt"]) == ("running", other.attempt)


def test_a_run_that_is_called_off_is_noticed_by_its_renewal(
    db: Rented, me: Identity, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RunSettled) as settled, me.run(session, "inv-1", lease=SHORT) as run:
        me.cancel_run(run.run_uid, "called off")
        wait_until(lambda: "the lease of a run is lost: RunSettled" in caplog.text)
    assert settled.value.call == "renew_lease"


@pytest.mark.parametrize("ending", ["normal", "error", "fail", "cancel"])
def test_nothing_renews_after_the_end(db: Rented, me: Identity, session: Session, ending: str) -> None:
    with pytest.raises(ZeroDivisionError):
        with me.run(session, "inv-1", lease=SHORT) as run:
            if ending == "fail":
                run.fail()
            elif ending == "cancel":
                run.cancel("off")
            elif ending == "error":
                raise ZeroDivisionError
        raise ZeroDivisionError
    assert [thread.name for thread in threads() if thread.name == "durable-pg renewal"] == []
    after = lease_of(db, run.run_uid)
    other = me.open_session("support", "s-2")
    with me.run(other, "inv-1", lease=SHORT) as run_of_other:
        first = lease_of(db, run_of_other.run_uid)
        wait_until(lambda: lease_of(db, run_of_other.run_uid) > first)
    assert lease_of(db, run.run_uid) == after
    assert len(stored(db, "runs")) == 2
