"""start_run starts an invocation once and gives a retry its answer; list_runs shows what was started."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.calls import append, call, call_all, open_session, rewind_before, say, settle, start
from tests.support.harness import refused, value
from tests.support.rented import Rented, nothing_written


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


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


def test_runs_are_listed_as_they_were_sent_newest_first(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        runs = [
            start(app, session, f"inv-{number}", input={"n\0": number}, trigger="cron", worker="w", max_attempts=3)
            for number in range(3)
        ]
        settle(app, runs[0], result={"r": "\ud800"}, tools_executed=["b", "a"])
        listed = call_all(app, "list_runs")
    assert [run["run_uid"] for run in listed] == runs[::-1]
    assert [run["input"] for run in listed] == [{"n\0": number} for number in (2, 1, 0)]
    assert {run["trigger"] for run in listed} == {"cron"}
    assert [(run["lease_holder"], run["max_attempts"]) for run in listed] == [("w", 3), ("w", 3), (None, 3)]
    settled = listed[-1]
    assert (settled["status"], settled["tools_executed"], settled["result"]) == (
        "succeeded",
        ["a", "b"],
        {"r": "\ud800"},
    )
    assert settled["settled_at"] >= settled["started_at"]
    assert listed[0]["settled_at"] is None


def test_runs_of_one_session_can_be_listed_alone(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        first = start(app, session)
        start(app, open_session(app, "s2"))
        assert [run["run_uid"] for run in call_all(app, "list_runs", session_uid=session)] == [first]


def test_an_operator_lists_the_runs_of_its_tenant(db: Rented, session: UUID) -> None:
    for tenant, user in (("T1", "U1"), ("T1", "U2"), ("T2", "U1")):
        with db.as_app(tenant, user) as app:
            start(app, open_session(app))
    with db.as_operator() as operator:
        assert sorted(run["user_id"] for run in call_all(operator, "list_runs")) == ["U1", "U2"]


def test_a_rewind_lets_the_invocation_run_with_another_input(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session)
        first = start(app, session, input={"a": 1})
        settle(app, first)
        append(app, session, "user", metadata=rewind_before("inv-1"))
        assert start(app, session, input={"a": 2}) != first
