"""cancel_run: a run is called off by its user or an operator, whoever holds it; its worker records nothing more."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tests.support.calls import (
    SHORT,
    append,
    ask_for,
    begin,
    call,
    finish,
    interrupt,
    open_session,
    record,
    said,
    save,
    settle,
    start,
    use_tool,
    wait_until_over,
)
from tests.support.harness import Connection, refused
from tests.support.rented import Rented, nothing_written, stored


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


@pytest.fixture
def run(db: Rented, session: UUID) -> UUID:
    with db.as_app() as app:
        return start(app, session)


def cancel(connection: Any, run: UUID, reason: str | None = "the customer hung up") -> Any:
    return call(connection, "cancel_run", run_uid=run, reason=reason)


@pytest.mark.parametrize("who", ["app", "operator"])
@pytest.mark.parametrize("state", ["held", "interrupted", "awaiting", "lease over"])
def test_an_open_run_is_cancelled_whoever_holds_it(db: Rented, session: UUID, who: str, state: str) -> None:
    with db.as_app() as app:
        started = ask_for(app, session, lease=SHORT if state == "lease over" else "5 minutes")
        run = started["run_uid"]
        if state == "interrupted":
            interrupt(app, run)
    if state == "awaiting":
        with db.as_engine() as engine:
            engine.execute("update durable.runs set status = 'awaiting', lease_holder = null")
    elif state == "lease over":
        wait_until_over(db, started["lease_expires_at"])
    with db.as_app() if who == "app" else db.as_operator() as connection:
        told = cancel(connection, run)
    assert (told["outcome"], told["status"], told["error"]) == (
        *("settled", "cancelled"),
        {"reason": "the customer hung up"},
    )
    (row,) = stored(db, "runs")
    assert (row["status"], row["lease_holder"], row["settled_at"] is not None) == ("cancelled", None, True)


def test_an_operators_cancellation_leaves_an_audit_row(db: Rented, run: UUID) -> None:
    with db.as_operator() as operator:
        cancel(operator, run)
    (row,) = stored(db, "audit_log")
    assert (row["login"], row["acted_by"], row["action"]) == ("operator", "on-call", "cancel_run")
    assert (row["subject_kind"], row["subject_uid"], row["reason"]) == ("run", run, "the customer hung up")


def test_a_users_own_cancellation_leaves_none(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        cancel(app, run)
    assert stored(db, "audit_log") == []


@pytest.mark.parametrize("who", ["app", "operator"])
def test_cancelling_again_is_harmless(db: Rented, run: UUID, who: str) -> None:
    with db.as_app() as app:
        first = cancel(app, run)
    with nothing_written(db), db.as_app() if who == "app" else db.as_operator() as connection:
        assert cancel(connection, run) == {**first, "outcome": "already_settled"}


@pytest.mark.parametrize("who", ["app", "operator"])
@pytest.mark.parametrize("status", ["succeeded", "failed"])
def test_a_run_with_another_outcome_is_not_cancelled(db: Rented, run: UUID, who: str, status: str) -> None:
    with db.as_app() as app:
        settle(app, run, status=status)
    connected = db.as_app() if who == "app" else db.as_operator()
    with nothing_written(db), refused("55W03", match=status), connected as connection:
        cancel(connection, run)


@pytest.mark.parametrize("who", ["app", "operator"])
@pytest.mark.parametrize("reason", [None, "", " ", "x" * 2001])
def test_a_reason_is_given(db: Rented, run: UUID, who: str, reason: str | None) -> None:
    connected = db.as_app() if who == "app" else db.as_operator()
    with nothing_written(db), refused("22W03", match="reason"), connected as connection:
        cancel(connection, run, reason)


def test_the_holder_is_told_that_the_run_is_settled_and_records_nothing(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_operator() as operator:
        cancel(operator, run)
    acts: tuple[Callable[[Connection], object], ...] = (
        lambda app: call(app, "renew_lease", run_uid=run, attempt=1),
        lambda app: interrupt(app, run),
        lambda app: settle(app, run),
        lambda app: append(app, session, content=said("late"), invocation_id="inv-1", attempt=1),
        lambda app: begin(app, run),
        lambda app: save(app, run),
        lambda app: record(app, run, events=[{"author": "agent", "content": said("late")}]),
    )
    for act in acts:
        with nothing_written(db), refused("55W03", match="cancelled"), db.as_app() as app:
            act(app)


def test_what_it_has_begun_may_still_be_finished(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        effect = begin(app, run)["effect_uid"]
        cancel(app, run)
        assert finish(app, effect, result={"id": 7})["outcome"] == "finished"


def test_the_tools_it_called_are_named(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        use_tool(app, session, "lookup", attempt=1)
        begin(app, run)
    with db.as_operator() as operator:
        assert cancel(operator, run)["tools_executed"] == ["lookup", "refund"]


def test_an_operator_cancels_in_its_own_tenant_only(db: Rented, run: UUID) -> None:
    with nothing_written(db), refused("42W05"), db.as_operator("T2") as operator:
        cancel(operator, run)


def test_a_run_of_a_closed_session_is_cancelled(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        call(app, "close_session", session_uid=session, reason="done")
        assert cancel(app, run)["outcome"] == "settled"


def test_a_run_that_was_cancelled_for_the_reason_max_attempts_is_not_taken_for_one_that_used_them_up(
    db: Rented, run: UUID
) -> None:
    with db.as_app() as app:
        cancel(app, run, "max_attempts")
    with nothing_written(db), refused("55W03"), db.as_app() as app:
        interrupt(app, run)


@pytest.mark.parametrize("login", ["maintainer", "auditor"])
def test_nobody_else_cancels(db: Rented, run: UUID, login: str) -> None:
    connected = db.as_maintainer() if login == "maintainer" else db.as_auditor()
    with nothing_written(db), refused("42501"), connected as connection:
        cancel(connection, run)
