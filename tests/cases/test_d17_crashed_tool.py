"""D17, crewAIInc/crewAI#5802: after a crash the tool was run again, and had paid already."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from psycopg.rows import DictRow
from psycopg.types.json import Json

from tests.cases.crashing import PAY, killed
from tests.support.calls import call, call_all, open_session, start
from tests.support.harness import Connection, refused
from tests.support.rented import Rented, nothing_written, stored

LEASE = "500 milliseconds"
SEEN = {"channel": "bank statement", "seen": "no. 1"}


@pytest.fixture
def paid(tmp_path: Path) -> Path:
    """The file to which the tool appends a line."""
    path = tmp_path / "paid"
    path.touch()
    return path


@pytest.fixture
def run(db: Rented) -> UUID:
    with db.as_app() as app:
        return start(app, open_session(app))


def begin(app: Connection, run: UUID, attempt: int, **more: Any) -> DictRow:
    return call(app, "begin_effect", **{"run_uid": run, "attempt": attempt, **PAY, **more})


def finish(app: Connection, effect: DictRow, attempt: int = 1, **more: Any) -> DictRow:
    return call(app, "finish_effect", effect_uid=effect["effect_uid"], attempt=attempt, **more)


def resolve(connection: Connection, effect: DictRow, status: str, evidence: object = SEEN, **more: Any) -> DictRow:
    asked = {"effect_uid": effect["effect_uid"], "status": status, "evidence": Json(evidence)}
    return call(connection, "resolve_effect", **asked, **more)


def only_effect(db: Rented) -> DictRow:
    """Read the effect as an application sees it."""
    with db.as_app() as app:
        (found,) = call_all(app, "list_effects")
    return found


def taken_over(db: Rented, seconds: float = 10) -> tuple[UUID, int]:
    """Take the run of the dead worker as soon as its lease is over; return it and the attempt."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with db.as_app(login="app2") as app:
            told = call(app, "start_run", session_uid=open_session(app), invocation_id="inv-1", worker="w-1")
        if told["outcome"] == "resumed":
            return told["run_uid"], told["attempt"]
        assert told["outcome"] == "busy", told
        time.sleep(0.02)
    pytest.fail("the lease of a dead worker never ends")


@contextmanager
def no_effect_written(db: Rented) -> Iterator[None]:
    """Assert that the ledger stays as it is; that an attempt has asked for an effect is noted elsewhere."""
    before = stored(db, "effects")
    yield
    assert stored(db, "effects") == before


@pytest.mark.parametrize(("moment", "lines"), [("before the tool", 0), ("after the tool", 1), ("before the commit", 1)])
def test_a_tool_whose_worker_died_before_its_outcome_was_kept_is_unverified_and_not_run_again(
    db: Rented, paid: Path, moment: str, lines: int
) -> None:
    killed(db.url("app"), moment, db.tenant("T1"), LEASE, paid)
    run, attempt = taken_over(db)
    # Nobody has swept: that the lease is over is enough.
    assert [effect["status"] for effect in stored(db, "effects")] == ["begun"]
    assert only_effect(db)["status"] == "unverified"
    with no_effect_written(db):
        for _ in range(3):
            with db.as_app() as app:
                told = begin(app, run, attempt)
            assert (told["outcome"], told["status"], told["result"]) == ("unverified", "unverified", None)
    assert len(paid.read_text().splitlines()) == lines


def test_while_the_lease_of_the_dead_worker_runs_its_tool_is_in_flight(db: Rented, paid: Path) -> None:
    killed(db.url("app"), "after the tool", db.tenant("T1"), "1 minute", paid)
    assert only_effect(db)["status"] == "begun"
    with db.as_app() as app:
        told = begin(app, start(app, open_session(app), "inv-2"), 1)
    assert told["outcome"] == "in_flight"
    with nothing_written(db), no_effect_written(db), refused("55W09"), db.as_app() as app:
        resolve(app, told, "failed")


def test_an_outcome_that_was_kept_before_the_worker_died_is_the_answer(db: Rented, paid: Path) -> None:
    killed(db.url("app"), "after the commit", db.tenant("T1"), LEASE, paid)
    run, attempt = taken_over(db)
    with db.as_app() as app:
        told = begin(app, run, attempt)
    assert (told["outcome"], told["status"], told["result"]) == ("recorded", "succeeded", {"paid": True})
    assert paid.read_text().splitlines() == [told["idempotency_key"]]


def test_once_somebody_has_recorded_that_it_happened_that_is_the_answer(db: Rented, paid: Path) -> None:
    killed(db.url("app"), "after the tool", db.tenant("T1"), LEASE, paid)
    run, attempt = taken_over(db)
    with db.as_operator() as operator:
        resolved = resolve(operator, only_effect(db), "succeeded", result=Json({"paid": True}))
    assert (resolved["outcome"], resolved["status"], resolved["evidence"]) == ("resolved", "succeeded", SEEN)
    with db.as_app() as app:
        told = begin(app, run, attempt)
    assert (told["outcome"], told["result"]) == ("recorded", {"paid": True})
    assert len(paid.read_text().splitlines()) == 1


def test_once_somebody_has_recorded_that_it_did_not_happen_it_runs_under_another_key(db: Rented, paid: Path) -> None:
    killed(db.url("app"), "before the tool", db.tenant("T1"), LEASE, paid)
    run, attempt = taken_over(db)
    first = only_effect(db)
    with db.as_app() as app:
        resolve(app, first, "failed")
        again = begin(app, run, attempt)
    assert (again["outcome"], again["failures"]) == ("execute", 1)
    assert again["effect_uid"] != first["effect_uid"]
    assert again["idempotency_key"] != first["idempotency_key"]


def test_a_tool_that_timed_out_is_unverified_and_not_run_again(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        told = begin(app, run, 1)
    with db.as_app() as app:
        finish(app, told, status="unverified", error=Json({"type": "TimeoutError"}))
    with no_effect_written(db), db.as_app() as app:
        again = begin(app, run, 1)
    assert (again["outcome"], again["effect_uid"]) == ("unverified", told["effect_uid"])


def test_a_tool_that_was_clearly_refused_has_failed_and_may_be_run_again(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        told = begin(app, run, 1)
        finish(app, told, status="failed", error=Json({"why": "card declined"}))
    (before,) = stored(db, "effects")
    with db.as_app() as app:
        again = begin(app, run, 1)
    assert (again["outcome"], again["failures"]) == ("execute", 1)
    assert again["idempotency_key"] != told["idempotency_key"]
    assert before in stored(db, "effects"), "the refusal is history"


# What a statement sets, and what refuses it.
MOVES = {
    "status = 'succeeded', error = '{}'": ("23W04", "_400_legal_transitions"),
    "status = 'failed', error = '{}'": ("23W04", "_400_legal_transitions"),
    "status = 'begun'": ("23514", "effects_final_is_finished"),
    "status = 'unverified'": ("23514", "effects_final_is_finished"),
    "status = 'begun', result = null, finished_at = null": ("23W02", "_200_write_once"),
    "status = 'unverified', result = null, finished_at = null": ("23W02", "_200_write_once"),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("recorded", ["succeeded", "failed"])
def test_direct_sql_moves_nothing_out_of_a_final_outcome(db: Rented, run: UUID, recorded: str, move: str) -> None:
    with db.as_app() as app:
        finish(app, begin(app, run, 1), status=recorded)
    for role in (db.as_engine, db.as_steward, db.superuser):
        with no_effect_written(db), refused(*MOVES[move]), role() as connection:
            connection.execute(f"update durable.effects set {move} where run_uid = '{run}'".encode())


@pytest.mark.parametrize("front", ["app", "operator"])
def test_no_login_moves_an_outcome_past_the_functions(db: Rented, run: UUID, front: str) -> None:
    with db.as_app() as app:
        begin(app, run, 1)
    as_login = db.as_app if front == "app" else db.as_operator
    with no_effect_written(db), refused("42501"), as_login() as connection:
        connection.execute("update durable.effects set status = 'failed'")


def test_direct_sql_begins_an_unverified_outcome_not_again(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        finish(app, begin(app, run, 1), status="unverified")
    again = "update durable.effects set status = 'begun'"
    for set_too, sqlstate in (("", "23W04"), (", begun_at = clock_timestamp()", "23514")):
        with no_effect_written(db), refused(sqlstate), db.as_engine() as engine:
            engine.execute(f"{again}{set_too}".encode())


@pytest.mark.parametrize(
    "evidence", [None, {}, {"channel": " ", "seen": " "}, {"channel": "bank"}, {"seen": "nothing"}]
)
def test_nobody_resolves_without_saying_where_he_looked_and_what_he_saw(
    db: Rented, run: UUID, evidence: dict[str, str] | None
) -> None:
    with db.as_app() as app:
        told = begin(app, run, 1)
        finish(app, told, status="unverified")
    for front in (db.as_app, db.as_operator):
        with nothing_written(db), no_effect_written(db), refused("22W03"), front() as connection:
            resolve(connection, told, "failed", evidence)
