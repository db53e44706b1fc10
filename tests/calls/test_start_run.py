"""start_run starts an invocation once, takes it up again, and gives a retry its answer."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.calls import (
    append,
    ask_for,
    call,
    expire,
    interrupt,
    open_session,
    renew,
    rewind_before,
    say,
    settle,
    start,
    wait_for_a_decision,
)
from tests.support.harness import refused, value
from tests.support.rented import Rented, nothing_written, stored


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


@pytest.fixture
def run(db: Rented, session: UUID) -> UUID:
    with db.as_app() as app:
        return start(app, session, worker="w-0")


def test_a_new_run_is_started_at_its_first_attempt(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        before = value(app, "select clock_timestamp()")
        told = call(app, "start_run", session_uid=session, invocation_id="inv-1", input={"a": 1})
    assert told["lease_expires_at"] >= before + timedelta(minutes=5)
    assert {**told, "run_uid": None, "lease_expires_at": None} == {
        "run_uid": None,
        "attempt": 1,
        "status": "running",
        "outcome": "started",
        "tools_executed": None,
        "result": None,
        "error": None,
        "lease_expires_at": None,
    }


def test_a_run_that_is_executing_is_busy(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        started = call(app, "start_run", session_uid=session, invocation_id="inv-1", input={"a": 1})
    with nothing_written(db), db.as_app() as app:
        told = call(app, "start_run", session_uid=session, invocation_id="inv-1", input={"a": 1})
    assert told == {**started, "outcome": "busy", "attempt": None}


def test_a_retry_of_a_finished_turn_gets_its_answer(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        run = start(app, session, input={"a": 1})
        settle(app, run, status="failed", result={"r\0": 1}, error={"e": 2}, tools_executed=["a"])
    with nothing_written(db), db.as_app() as app:
        told = call(app, "start_run", session_uid=session, invocation_id="inv-1", input={"a": 1})
    assert told == {
        "run_uid": run,
        "attempt": 1,
        "status": "failed",
        "outcome": "settled",
        "tools_executed": ["a"],
        "result": {"r\0": 1},
        "error": {"e": 2},
        "lease_expires_at": None,
    }


@pytest.mark.parametrize("given", [None, '{ "b":[1],"a" : 1 }'])
def test_a_retry_leaves_the_input_out_or_repeats_it_in_any_form(db: Rented, session: UUID, given: str | None) -> None:
    with db.as_app() as app:
        start(app, session, input={"a": 1, "b": [1]})
        told = call(app, "start_run", session_uid=session, invocation_id="inv-1", input=given, trigger="retry")
    assert told["outcome"] == "busy"


@pytest.mark.parametrize(("first", "second"), [('{"a": 1}', '{"a": 2}'), (None, '{"a": 1}'), ('{"a": 1}', "null")])
@pytest.mark.parametrize("settled", [False, True])
def test_another_input_is_refused(db: Rented, session: UUID, first: str | None, second: str, settled: bool) -> None:
    with db.as_app() as app:
        run = start(app, session, input=first)
        if settled:
            settle(app, run)
    with nothing_written(db), refused("23W07", match="was started with another input"), db.as_app() as app:
        call(app, "start_run", session_uid=session, invocation_id="inv-1", input=second)


def test_the_next_invocation_is_another_run(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        assert start(app, session, "inv-1") != start(app, session, "inv-2")


@pytest.mark.parametrize(
    ("change", "sqlstate"),
    [
        ({"invocation_id": ""}, "22W01"),
        ({"invocation_id": None}, "22W01"),
        ({"trigger": ""}, "22W01"),
        ({"trigger": None}, "22W01"),
        ({"worker": ""}, "22W01"),
        ({"lease": None}, "22W03"),
        ({"lease": timedelta(milliseconds=99)}, "22W03"),
        ({"lease": timedelta(days=1, milliseconds=1)}, "22W03"),
        ({"max_attempts": 0}, "22W03"),
        ({"input": "1e200000"}, "22W02"),
        ({"session_uid": None}, "22W03"),
        ({"session_uid": uuid4()}, "42W04"),
    ],
)
def test_a_run_without_what_it_needs_is_refused(
    db: Rented, session: UUID, change: dict[str, Any], sqlstate: str
) -> None:
    with nothing_written(db), refused(sqlstate), db.as_app() as app:
        call(app, "start_run", **{"session_uid": session, "invocation_id": "inv-1", **change})


def test_a_rewind_lets_the_invocation_run_with_another_input(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session)
        first = start(app, session, input={"a": 1})
        settle(app, first)
        append(app, session, "user", metadata=rewind_before("inv-1"))
        assert start(app, session, input={"a": 2}) != first


def test_a_started_run_is_held_for_five_minutes_by_whoever_asked(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        started = ask_for(app, session)
        pid = app.info.backend_pid
    (row,) = stored(db, "runs")
    assert (row["status"], row["attempt"], row["first_attempt"]) == ("running", 1, 1)
    assert row["lease_holder"] == f"app/{pid}"
    assert started["lease_expires_at"] == row["lease_expires_at"]
    assert abs(row["lease_expires_at"] - row["started_at"] - timedelta(minutes=5)) < timedelta(seconds=5)


def test_while_it_is_held_everybody_else_is_told_busy_and_not_the_attempt(db: Rented, session: UUID, run: UUID) -> None:
    with nothing_written(db), db.as_app() as app:
        for worker in ("w-0", "w-1", None):
            told = ask_for(app, session, worker=worker)
            assert (told["run_uid"], told["outcome"], told["attempt"], told["status"]) == (run, "busy", None, "running")
            assert told["lease_expires_at"] > value(app, "select clock_timestamp()")


@pytest.mark.parametrize("worker", ["w-0", "w-1"])
def test_once_the_lease_is_over_it_is_resumed_by_whoever_asks(db: Rented, session: UUID, worker: str) -> None:
    run = expire(db, session)
    with db.as_app() as app:
        told = ask_for(app, session, worker=worker)
        assert (told["run_uid"], told["outcome"], told["attempt"], told["status"]) == (run, "resumed", 2, "running")
        assert ask_for(app, session, worker=worker)["outcome"] == "busy"
    (row,) = stored(db, "runs")
    assert (row["lease_holder"], row["attempt"], row["tools_executed"]) == (worker, 2, None)


def test_a_worker_that_comes_back_under_its_name_does_not_inherit_its_lease(
    db: Rented, session: UUID, run: UUID
) -> None:
    with nothing_written(db), db.as_app() as app:
        assert ask_for(app, session, worker="w-0")["outcome"] == "busy"


def test_an_interrupted_run_is_resumed_at_once(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        told = interrupt(app, run, error={"why": "deployed\0"})
        assert (told["outcome"], told["status"], told["lease_expires_at"]) == ("interrupted", "interrupted", None)
        listed = call(app, "list_runs")
        assert (listed["interrupted_with"], listed["lease_holder"], listed["error"]) == (
            {"why": "deployed\0"},
            None,
            None,
        )
        assert ask_for(app, session)["attempt"] == 2
        assert call(app, "list_runs")["interrupted_with"] is None


def test_an_awaiting_run_waits(db: Rented, session: UUID, run: UUID) -> None:
    wait_for_a_decision(db, run)
    with nothing_written(db), db.as_app() as app:
        told = ask_for(app, session)
    assert (told["run_uid"], told["outcome"], told["attempt"], told["status"]) == (run, "awaiting", None, "awaiting")


def test_a_settled_run_is_settled_for_everybody(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        settle(app, run, result={"id": 7})
    with nothing_written(db), db.as_app() as app:
        told = ask_for(app, session, worker="w-1", max_attempts=1)
    assert (told["outcome"], told["status"], told["result"]) == ("settled", "succeeded", {"id": 7})


@pytest.mark.parametrize("lease", [None, "99 milliseconds", "0", "-1 second", "1 day 1 second"])
def test_a_lease_beyond_its_limits_is_refused(db: Rented, session: UUID, run: UUID, lease: str | None) -> None:
    with nothing_written(db), refused("22W03", match="lease is"), db.as_app() as app:
        ask_for(app, session, "inv-2", lease=lease)
    with nothing_written(db), refused("22W03", match="lease is"), db.as_app() as app:
        renew(app, run, lease=lease)


@pytest.mark.parametrize("lease", ["100 milliseconds", "1 day"])
def test_the_limits_of_a_lease_are_taken(db: Rented, session: UUID, lease: str) -> None:
    with db.as_app() as app:
        assert ask_for(app, session, lease=lease)["outcome"] == "started"


@pytest.mark.parametrize("worker", ["", " ", "w-0 ", "x" * 513])
def test_a_worker_without_a_name_is_refused(db: Rented, session: UUID, worker: str) -> None:
    with nothing_written(db), refused("22W01", match="worker"), db.as_app() as app:
        ask_for(app, session, worker=worker)
