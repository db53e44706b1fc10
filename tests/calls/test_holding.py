"""One attempt holds a run for a time by the database's clock; whoever lost it writes nothing more."""

from itertools import product
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.calls import (
    append,
    call,
    expire,
    interrupt,
    open_session,
    renew,
    said,
    say,
    settle,
    start,
    take_over,
    wait_for_a_decision,
)
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored

NOT_HELD = ["settled", "interrupted", "awaiting", "taken over", "not given", "guessed"]


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


@pytest.fixture
def run(db: Rented, session: UUID) -> UUID:
    with db.as_app() as app:
        return start(app, session, worker="w-0")


@pytest.mark.parametrize(
    ("state", "act"),
    sorted(
        set(product(NOT_HELD, ["renew", "interrupt", "settle", "append"]))
        # Equal repeats, which are harmless.
        - {("settled", "settle"), ("interrupted", "interrupt")}
    ),
)
def test_whoever_does_not_hold_the_run_writes_nothing(
    db: Rented, *, session: UUID, run: UUID, state: str, act: str
) -> None:
    with db.as_app() as app:
        if state == "settled":
            settle(app, run)
        elif state == "interrupted":
            interrupt(app, run)
        elif state == "taken over":
            take_over(app, session, run)
    if state == "awaiting":
        wait_for_a_decision(db, run)
    attempt = {"not given": None, "guessed": 7}.get(state, 1)
    sqlstate = "55W03" if state == "settled" else "55W04"
    with nothing_written(db), refused(sqlstate), db.as_app() as app:
        if act == "renew":
            renew(app, run, attempt)
        elif act == "interrupt":
            interrupt(app, run, attempt)
        elif act == "settle":
            settle(app, run, attempt=attempt)
        else:
            append(app, session, content=said("late"), invocation_id="inv-1", attempt=attempt)


@pytest.mark.parametrize("state", ["interrupted", "awaiting", "reaped"])
def test_a_worker_that_leaves_its_attempt_out_appends_nothing_to_an_open_run(
    db: Rented, session: UUID, state: str
) -> None:
    if state == "reaped":
        expire(db, session)
        with db.as_maintainer() as maintainer:
            call(maintainer, "reap_runs")
    else:
        with db.as_app() as app:
            run = start(app, session)
            if state == "interrupted":
                interrupt(app, run)
        if state == "awaiting":
            wait_for_a_decision(db, run)
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        append(app, session, content=said("late"), invocation_id="inv-1")


def test_the_users_own_words_need_no_attempt(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        assert say(app, session)["outcome"] == "appended"
        interrupt(app, run)
        assert say(app, session, "and", repeatable=True)["outcome"] == "appended"


def test_an_event_says_which_attempt_wrote_it(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        append(app, session, content=said("one"), invocation_id="inv-1", attempt=1)
        attempt = take_over(app, session, run)
        append(app, session, content=said("two"), invocation_id="inv-1", attempt=attempt)
    assert [row["attempt"] for row in sorted(stored(db, "events"), key=lambda row: row["seq"])] == [1, 2]


@pytest.mark.parametrize("function", ["renew_lease", "interrupt_run", "cancel_run"])
def test_a_foreign_run_is_as_absent_as_none(db: Rented, run: UUID, function: str) -> None:
    more: dict[str, Any] = {"reason": "called off"} if function == "cancel_run" else {"attempt": 1}
    for tenant, user, which in (("T1", "U2", run), ("T2", "U1", run), ("T1", "U1", uuid4())):
        with nothing_written(db), refused("42W05"), db.as_app(tenant, user) as app:
            call(app, function, run_uid=which, **more)
    with nothing_written(db), refused("22W03", match="run_uid is missing"), db.as_app() as app:
        call(app, function, **more)


def test_the_attempt_never_shrinks_for_the_back_role_either(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        take_over(app, session, run)
    with nothing_written(db), refused("23W12"), db.as_engine() as engine:
        engine.execute("update durable.runs set attempt = 1")


def test_no_clock_of_the_session_extends_a_lease(db: Rented, session: UUID) -> None:
    run = expire(db, session)
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        app.execute("set local timezone = '+14'")
        renew(app, run)
