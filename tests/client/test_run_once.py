# Generated from test_run_once_async.py by tools/async_to_sync.py: change that.
"""What a run records in its block, and run_once(), which executes a turn or knows its answer."""

from collections.abc import Iterator
from typing import Any

import pytest

from durable_pg import Durable, Identity, Run
from durable_pg.errors import (
    CheckpointGap,
    PoolNeeded,
    RunSettled,
)
from durable_pg.types import Session
from tests.client.brought import bring
from tests.client.leases import statuses
from tests.client.provider import Provider
from tests.support.calls import said, tool_call
from tests.support.rented import Rented, nothing_written, stored


@pytest.fixture
def me(db: Rented) -> Iterator[Identity]:
    with Durable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest.fixture
def session(me: Identity) -> Session:
    return me.open_session("support", "s-1")


def test_events_of_a_run_carry_invocation_and_attempt(db: Rented, me: Identity, session: Session) -> None:
    with me.run(session, "inv-1") as run:
        run.append_event("agent", tool_call("refund"), event_id="e-1", state_delta={"n": 1}, metadata={"t": 1})
        assert (run.append_event("agent", tool_call("refund"), event_id="e-1")).outcome == "duplicate"
    (event,) = me.read_events(session)
    assert (event.invocation_id, event.attempt, event.tool_calls, event.metadata) == ("inv-1", 1, ["refund"], {"t": 1})
    assert run.outcome.tools_executed == ["refund"]


def test_run_once_calls_the_turn_once_and_then_returns_what_is_recorded(me: Identity, session: Session) -> None:
    turns: list[int] = []

    def turn(run: Run) -> Any:
        turns.append(run.attempt)
        return {"text": "done"}

    for _ in range(2):
        assert me.run_once(session, "inv-1", turn, message=said("hi")) == {"text": "done"}
    assert turns == [1]
    assert len(me.read_events(session)) == 1


def test_run_once_goes_on_where_an_attempt_was_interrupted(me: Identity, session: Session) -> None:
    provider = Provider("done")

    def turn(run: Run) -> Any:
        result = run.effect("refund", call=provider)
        if not run.resumed:
            raise ZeroDivisionError
        return result

    with pytest.raises(ZeroDivisionError):
        me.run_once(session, "inv-1", turn)
    assert me.run_once(session, "inv-1", turn) == "done"
    assert len(provider.keys) == 1


def test_run_once_says_that_a_run_has_failed_each_time(me: Identity, session: Session) -> None:
    def turn(run: Run) -> Any:
        run.fail("no")
        return "not an answer"

    for _ in range(2):
        with pytest.raises(RunSettled) as settled:
            me.run_once(session, "inv-1", turn)
        assert settled.value.run is not None
        assert (settled.value.run.status, settled.value.run.error) == ("failed", "no")


def test_run_once_does_not_take_the_answer_of_a_run_inside_for_its_own(
    db: Rented, me: Identity, session: Session
) -> None:
    with me.run(session, "inv-2") as inner:
        inner.result = "of the inner one"

    def turn(run: Run) -> Any:
        with me.run(session, "inv-2"):
            pytest.fail("entered")

    with pytest.raises(RunSettled):
        me.run_once(session, "inv-1", turn)
    assert statuses(db, "runs") == ["interrupted", "succeeded"]


def test_a_run_on_a_connection_that_was_brought_is_refused_at_once(db: Rented, session: Session) -> None:
    with bring(db, "psycopg") as brought:
        me = Durable.on(brought.connection).act_as(db.tenant("T1"), "U1")
        with nothing_written(db), pytest.raises(PoolNeeded, match="begin_effect") as refused:
            me.run(session, "inv-1")
        assert "committed before a tool is called" in refused.value.detail


def test_steps_are_saved_one_by_one(db: Rented, me: Identity, session: Session) -> None:
    with me.run(session, "inv-1") as run:
        assert (run.checkpoint(1, {"n": 1})).outcome == "saved"
        assert (run.step, run.state) == (1, {"n": 1})
        assert (run.checkpoint(1, {"n": 1})).outcome == "already_saved"
        with nothing_written(db), pytest.raises(CheckpointGap):
            run.checkpoint(3, {"n": 3})
        assert run.step == 1
        begun = me.begin_effect(run.outcome, "mail", step=2)
        step = run.record_step(
            2,
            events=[{"author": "agent", "content": tool_call("mail"), "event_id": "e-1"}],
            finished=[{"effect_uid": begun.effect_uid, "status": "succeeded", "result": "sent"}],
            state={"n": 2},
        )
        assert (step.outcome, step.event_seqs, run.step, run.state) == ("saved", [1], 2, {"n": 2})
        assert (run.record_step(3)).outcome == "recorded"
        assert run.step == 2
    assert [(row["status"], row["result"]) for row in stored(db, "effects")] == [("succeeded", "sent")]
