# Generated from test_running_faults_async.py by tools/async_to_sync.py: change that.
"""A connection that breaks under a run: nothing is called twice, nothing that may have happened is marked as failed."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from durable_pg import Durable, Identity, Run
from durable_pg.errors import CannotConnect, ConnectionLost, EffectUnverified, RunBusy
from durable_pg.types import Session
from tests.client.disturbing import told, wait_until
from tests.client.leases import lease_of, let_the_lease_run_out, statuses, the_run
from tests.client.provider import Provider
from tests.client.proxy import Proxy, in_front_of
from tests.support.rented import Rented, stored


@pytest.fixture
def proxy(db: Rented) -> Iterator[Proxy]:
    with in_front_of(db) as proxy:
        yield proxy


@pytest.fixture
def me(db: Rented, proxy: Proxy) -> Iterator[Identity]:
    with Durable.from_url(proxy.url(), max_size=1, timeout=2) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest.fixture
def session(me: Identity) -> Session:
    return me.open_session("support", "s-1")


def test_an_outcome_whose_answer_is_lost_is_recorded_once(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    provider = Provider("done")

    def tool(key: str) -> str:
        proxy.lose_answers()
        return str(provider(key))

    with me.run(session, "inv-1") as run:
        assert run.effect("refund", call=tool) == "done"
    assert (statuses(db), the_run(db)["status"], len(provider.keys)) == (["succeeded"], "succeeded", 1)


def test_an_outcome_that_may_be_recorded_is_raised_and_found_by_the_next_attempt(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    provider = Provider("done")

    def tool(key: str) -> str:
        proxy.lose_answers(times=2)
        return str(provider(key))

    with pytest.raises(ConnectionLost) as lost, me.run(session, "inv-1") as run:
        run.effect("refund", call=tool)
    assert told(lost.value) == (ConnectionLost, True, "finish_effect")
    assert (statuses(db), the_run(db)["status"]) == (["succeeded"], "interrupted")
    with me.run(session, "inv-1") as run:
        assert run.effect("refund", call=provider) == "done"
    assert len(provider.keys) == 1


def test_an_outcome_that_never_arrived_leaves_the_effect_unverified(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    provider = Provider("done")

    def tool(key: str) -> str:
        proxy.lose_requests(times=2)
        return str(provider(key))

    with pytest.raises(ConnectionLost), me.run(session, "inv-1") as run:
        run.effect("refund", call=tool)
    assert (statuses(db), the_run(db)["status"]) == (["unverified"], "interrupted")
    with pytest.raises(EffectUnverified), me.run(session, "inv-1") as run:
        run.effect("refund", call=provider)
    assert len(provider.keys) == 1


def test_a_failure_that_never_arrived_leaves_the_effect_unverified(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    def tool(key: str) -> str:
        proxy.lose_requests(times=2)
        raise KeyError(key)

    with pytest.raises(ConnectionLost), me.run(session, "inv-1") as run:
        run.effect("refund", call=tool, failed_on=KeyError)
    assert statuses(db) == ["unverified"]


def test_the_exception_of_a_tool_is_raised_though_nothing_can_be_recorded(
    db: Rented, proxy: Proxy, me: Identity, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    def tool(key: str) -> str:
        proxy.refuse()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), me.run(session, "inv-1") as run:
        run.effect("refund", call=tool)
    assert "an effect could not be recorded as unverified" in caplog.text
    assert "a run could not be given back" in caplog.text
    assert (statuses(db), the_run(db)["status"]) == (["begun"], "running")
    proxy.accept()
    let_the_lease_run_out(db, run.run_uid)
    with Durable.from_url(db.url("app"), max_size=1) as another:
        me = another.act_as(db.tenant("T1"), "U1")
        with pytest.raises(EffectUnverified), me.run(session, "inv-1") as run:
            assert run.attempt == 2
            run.effect("refund", call=Provider())


def test_an_effect_whose_beginning_may_be_recorded_is_not_called(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    provider = Provider()
    with pytest.raises(ConnectionLost) as lost, me.run(session, "inv-1") as run:
        proxy.lose_answers()
        run.effect("refund", call=provider)
    assert told(lost.value) == (ConnectionLost, True, "begin_effect")
    assert (statuses(db), provider.keys) == (["unverified"], [])


def test_a_run_whose_start_may_be_recorded_is_not_entered_and_can_be_taken_later(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    proxy.lose_answers()
    with pytest.raises(ConnectionLost) as lost, me.run(session, "inv-1"):
        pytest.fail("entered")
    assert told(lost.value) == (ConnectionLost, True, "start_run")
    with pytest.raises(RunBusy), me.run(session, "inv-1"):
        pytest.fail("entered")
    let_the_lease_run_out(db, the_run(db)["run_uid"])
    with me.run(session, "inv-1") as run:
        assert (run.attempt, run.resumed) == (2, True)


def test_a_run_is_settled_once_though_the_answer_is_lost(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    with me.run(session, "inv-1") as run:
        run.result = "done"
        proxy.lose_answers()
    assert run.outcome.outcome == "already_settled"
    assert (the_run(db)["status"], the_run(db)["result"]) == ("succeeded", "done")


def test_a_run_that_may_be_settled_says_so_and_gives_its_result_the_next_time(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    turns: list[Run] = []

    def turn(run: Run) -> str:
        turns.append(run)
        proxy.lose_answers(times=2)
        return "done"

    with pytest.raises(ConnectionLost) as lost:
        me.run_once(session, "inv-1", turn)
    assert told(lost.value) == (ConnectionLost, True, "settle_run")
    assert me.run_once(session, "inv-1", turn) == "done"
    assert len(turns) == 1


def test_a_run_that_was_not_settled_is_taken_up_when_its_lease_is_over(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    with pytest.raises(ConnectionLost), me.run(session, "inv-1"):
        proxy.lose_requests(times=2)
    assert the_run(db)["status"] == "running"
    let_the_lease_run_out(db, the_run(db)["run_uid"])
    with me.run(session, "inv-1") as run:
        assert run.resumed


def test_a_run_is_given_back_once_though_the_answer_is_lost(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    with pytest.raises(ZeroDivisionError), me.run(session, "inv-1"):
        proxy.lose_answers()
        raise ZeroDivisionError
    assert (the_run(db)["status"], the_run(db)["attempt"]) == ("interrupted", 1)


def test_no_server_when_a_run_begins(proxy: Proxy, me: Identity, session: Session) -> None:
    proxy.refuse()
    with pytest.raises(CannotConnect) as refused, me.run(session, "inv-1"):
        pytest.fail("entered")
    assert not refused.value.may_have_taken_effect


def test_a_lease_is_renewed_over_a_connection_that_breaks(
    db: Rented, proxy: Proxy, me: Identity, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    with me.run(session, "inv-1", lease=timedelta(seconds=1.5)) as run:
        before = lease_of(db, run.run_uid)
        proxy.lose_requests(times=2)
        wait_until(lambda: "could not be renewed" in caplog.text)
        wait_until(lambda: lease_of(db, run.run_uid) > before)
        run.append_event("agent", 1)
    assert the_run(db)["status"] == "succeeded"
    assert len(stored(db, "events")) == 1
