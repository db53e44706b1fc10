"""D18, aegra/aegra#502: a worker that had stalled went on under the name that its replacement had, and was believed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from tests.cases.stalling import Worker, worker
from tests.support.calls import call, open_session, said, start
from tests.support.harness import Database, refused
from tests.support.rented import Rented, nothing_written, stored

NAME = "w-0"
LEASE = "500 milliseconds"
PAY = {"tool": "pay", "args": {"to": "acct-9"}}


@dataclass(frozen=True)
class TakenOver:
    """A run that was taken over, and the two processes that both go by the same name."""

    db: Rented
    session: UUID
    run: UUID
    effect: UUID
    old: Worker
    new: Worker
    took: dict[str, Any]

    def writes(self, attempt: int | None, by: str) -> dict[str, dict[str, Any]]:
        """Return all that a worker may want to write, by function."""
        run = {"run_uid": self.run, "attempt": attempt}
        event = {"session_uid": self.session, "author": "agent", "content": said(by), "invocation_id": "inv-1"}
        return {
            "renew_lease": {**run, "lease": "1 minute"},
            "interrupt_run": {**run, "error": {"why": "released"}},
            "append_event": {**event, "attempt": attempt, "state_delta": {"by": by}},
            "begin_effect": {**run, **PAY, "ordinal": 1},
            "save_checkpoint": {**run, "step": 1, "state": {"by": by}},
            "record_step": {**run, "step": 1, "events": [{"author": "agent", "content": said(by)}]},
            "settle_run": {**run, "status": "succeeded", "result": {"by": by}, "tools_executed": ["pay"]},
        }

    def late_writes(self) -> dict[str, dict[str, Any]]:
        """Return what the old worker still wants to write."""
        return self.writes(1, "old")


@contextmanager
def take_over(db: Rented) -> Iterator[TakenOver]:
    """Make one. The old worker begins a tool and stalls; as soon as the lease is over, the new one takes the run."""
    with db.as_app() as app:
        session = open_session(app)
    url, tenant = db.url("app"), db.tenant("T1")
    claim = {"session_uid": session, "invocation_id": "inv-1", "worker": NAME}
    with worker(url, tenant) as old, worker(url, tenant) as new:
        started = old.call("start_run", **claim, lease=LEASE)
        assert started["outcome"] == "started"
        effect = old.call("begin_effect", run_uid=started["run_uid"], attempt=1, **PAY)
        assert effect["outcome"] == "execute"
        old.stall()
        took = claimed(new, **claim, lease="5 minutes")
        old.wake()
        yield TakenOver(db, session, UUID(started["run_uid"]), UUID(effect["effect_uid"]), old, new, took)


@pytest.fixture
def taken_over(db: Rented) -> Iterator[TakenOver]:
    with take_over(db) as taken_over:
        yield taken_over


@pytest.fixture(scope="module")
def untouched(module_db: Database) -> Iterator[TakenOver]:
    """One that tests share which leave it as it is."""
    with take_over(Rented.of(module_db)) as taken_over:
        yield taken_over


def claimed(new: Worker, **claim: Any) -> dict[str, Any]:
    """Claim until it is granted."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        told = new.call("start_run", **claim)
        if told["outcome"] == "resumed":
            return told
        assert (told["outcome"], told["attempt"]) == ("busy", None), "a worker's name gives nothing"
        time.sleep(0.02)
    pytest.fail("the lease of a stalled worker never ends")


LATE = ("renew_lease", "interrupt_run", "append_event", "begin_effect", "save_checkpoint", "record_step", "settle_run")


@pytest.mark.parametrize("function", LATE)
def test_what_the_stalled_worker_still_writes_is_refused(untouched: TakenOver, function: str) -> None:
    with nothing_written(untouched.db):
        assert untouched.old.call(function, **untouched.late_writes()[function]) == {"sqlstate": "55W04"}


def test_every_late_write_is_tried(untouched: TakenOver) -> None:
    assert tuple(untouched.late_writes()) == LATE


@pytest.mark.parametrize("function", LATE)
def test_without_its_number_the_stalled_worker_writes_nothing_either(untouched: TakenOver, function: str) -> None:
    with nothing_written(untouched.db):
        assert untouched.old.call(function, **untouched.writes(None, "old")[function]) == {"sqlstate": "55W04"}


def test_the_replacement_goes_on_as_if_nobody_had_disturbed_it(db: Rented, taken_over: TakenOver) -> None:
    for function, late in taken_over.late_writes().items():
        assert taken_over.old.call(function, **late) == {"sqlstate": "55W04"}
    (run,) = stored(db, "runs")
    assert (run["attempt"], run["lease_holder"], run["status"]) == (2, NAME, "running")
    assert str(run["lease_expires_at"]) == taken_over.took["lease_expires_at"]
    for function, own in taken_over.writes(2, "new").items():
        if function != "interrupt_run":
            assert "sqlstate" not in taken_over.new.call(function, **own), function
    (run,) = stored(db, "runs")
    assert (run["status"], run["result"], run["tools_executed"]) == ("succeeded", {"by": "new"}, ["pay"])


def test_after_the_replacement_has_settled_the_stalled_worker_changes_nothing(
    db: Rented, taken_over: TakenOver
) -> None:
    settled = {"run_uid": taken_over.run, "attempt": 2, "status": "succeeded", "result": {"by": "new"}}
    assert taken_over.new.call("settle_run", **settled)["outcome"] == "settled"
    with nothing_written(db):
        for function, late in taken_over.late_writes().items():
            told = taken_over.old.call(function, **late)
            assert told["sqlstate"] in ("55W03", "55W04", "23W02"), function
    (run,) = stored(db, "runs")
    assert run["result"] == {"by": "new"}


def test_each_take_gives_a_greater_number_whatever_the_name(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        numbers = [call(app, "start_run", session_uid=session, invocation_id="inv-1", worker=NAME)["attempt"]]
    for number in range(1, 5):
        with db.as_app() as app:
            (run,) = stored(db, "runs")
            call(app, "interrupt_run", run_uid=run["run_uid"], attempt=number)
            numbers.append(call(app, "start_run", session_uid=session, invocation_id="inv-1", worker=NAME)["attempt"])
    assert numbers == [1, 2, 3, 4, 5]


def test_a_worker_that_restarts_under_its_old_name_waits_for_its_old_lease(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        start(app, session, worker=NAME)
    with db.as_app() as app:
        told = call(app, "start_run", session_uid=session, invocation_id="inv-1", worker=NAME)
    assert (told["outcome"], told["attempt"]) == ("busy", None)


def test_a_late_true_outcome_of_a_tool_is_kept_while_nobody_has_begun_it_again(
    db: Rented, taken_over: TakenOver
) -> None:
    outcome = {"effect_uid": taken_over.effect, "attempt": 1, "status": "succeeded", "result": {"paid": 1}}
    told = taken_over.old.call("finish_effect", **outcome)
    assert (told["outcome"], told["status"]) == ("finished", "succeeded")
    asked = taken_over.new.call("begin_effect", run_uid=taken_over.run, attempt=2, **PAY)
    assert (asked["outcome"], asked["result"]) == ("recorded", {"paid": 1})


def test_a_late_outcome_of_a_tool_that_was_begun_again_is_refused(db: Rented) -> None:
    again = {**PAY, "provider_dedupes_for": "1 hour"}
    with db.as_app() as app:
        session = open_session(app)
        run = start(app, session, worker=NAME)
        effect = call(app, "begin_effect", run_uid=run, attempt=1, **again)
        call(app, "interrupt_run", run_uid=run, attempt=1)
        call(app, "start_run", session_uid=session, invocation_id="inv-1", worker=NAME)
        assert call(app, "begin_effect", run_uid=run, attempt=2, **again)["outcome"] == "execute"
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        call(app, "finish_effect", effect_uid=effect["effect_uid"], attempt=1, status="succeeded")


@pytest.mark.parametrize("status", ["succeeded", "failed", "unverified"])
def test_a_late_outcome_of_a_tool_that_another_run_has_begun_again_is_refused(db: Rented, status: str) -> None:
    """The attempts of two runs have the same numbers."""
    again = {**PAY, "intent": "order-7", "provider_dedupes_for": "1 hour"}
    with db.as_app() as app:
        session = open_session(app)
        run, other = start(app, session), start(app, session, "inv-2")
        effect = call(app, "begin_effect", run_uid=run, attempt=1, **again)
        call(app, "interrupt_run", run_uid=run, attempt=1)
        assert call(app, "begin_effect", run_uid=other, attempt=1, **again)["outcome"] == "execute"
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        call(app, "finish_effect", effect_uid=effect["effect_uid"], attempt=1, status=status)


@pytest.mark.parametrize("minutes", [-10, 10])
def test_a_wrong_clock_of_the_caller_neither_shortens_nor_lengthens_a_lease(untouched: TakenOver, minutes: int) -> None:
    with untouched.db.superuser() as root:
        (clock,) = root.execute("select clock_timestamp() + %s * interval '1 minute' as now", (minutes,)).fetchall()
    event = {**untouched.late_writes()["append_event"], "occurred_at": clock["now"]}
    with nothing_written(untouched.db):
        assert untouched.old.call("append_event", **event) == {"sqlstate": "55W04"}
    assert untouched.new.call("append_event", **{**event, "attempt": 2})["outcome"] == "appended"


def test_no_call_about_leases_takes_a_time(db: Rented) -> None:
    """So the clock of the caller has no way in, however wrong it is."""
    expected = {
        *("start_run", "renew_lease", "interrupt_run", "settle_run", "cancel_run", "list_resumable", "reap_runs"),
        *("begin_effect", "finish_effect", "save_checkpoint", "record_step"),
    }
    # resolve_effect takes the begun_at that the database has given out, to refuse a look from before it.
    with db.superuser() as root:
        found = root.execute(
            """
            select p.proname, array_agg(distinct a.type::regtype::text) as types
            from pg_proc as p, unnest(coalesce(p.proargtypes::oid[], '{}')) as a (type)
            where p.pronamespace = 'durable'::regnamespace and p.proname = any(%s)
            group by p.proname
            """,
            (sorted(expected),),
        ).fetchall()
    assert {function["proname"] for function in found} == expected
    for function in found:
        assert not [name for name in function["types"] if name.startswith(("time", "date"))], function
