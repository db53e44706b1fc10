"""list_resumable: the maintainer sees which runs nobody executes, and nothing of what is said."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.calls import (
    SHORT,
    ask_for,
    begin,
    call,
    call_all,
    cancel_open_runs,
    dead,
    finish,
    interrupt,
    open_session,
    resolve,
    say,
    settle,
    start,
    wait_until_over,
)
from tests.support.rented import Rented, nothing_written


@pytest.fixture(autouse=True)
def _nobody_elses(db: Rented) -> Iterator[None]:
    yield
    cancel_open_runs(db)


def resumable(db: Rented, **more: Any) -> list[dict[str, Any]]:
    with nothing_written(db), db.as_maintainer() as maintainer:
        return call_all(maintainer, "list_resumable", **more)


def test_a_dead_run_is_listed_with_whose_it_is_and_nothing_that_anybody_said(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        say(app, session)
        started = ask_for(app, session, input={"secret": 1}, lease=SHORT)
        begin(app, started["run_uid"])
        assert [row for row in resumable(db) if row["run_uid"] == started["run_uid"]] == []
    wait_until_over(db, started["lease_expires_at"])
    (listed,) = resumable(db)
    assert listed == {
        "tenant_id": db.tenant("T1"),
        "user_id": "U1",
        "app_name": "support",
        "session_uid": session,
        "run_uid": started["run_uid"],
        "invocation_id": "inv-1",
        "status": "running",
        "attempt": 1,
        "since": started["lease_expires_at"],
        "unverified": 1,
    }


def test_runs_of_all_tenants_and_users_are_listed_longest_waiting_first(db: Rented) -> None:
    runs = [dead(db, user=user, tenant=tenant) for tenant, user in (("T2", "U1"), ("T1", "U2"), ("T1", "U1"))]
    with db.as_app("T3") as app:
        last = start(app, open_session(app))
        interrupt(app, last)
    assert [row["run_uid"] for row in resumable(db)] == [*runs, last]
    assert [row["run_uid"] for row in resumable(db, max_runs=2)] == runs[:2]


def test_one_that_was_tried_again_goes_to_the_end(db: Rented) -> None:
    first, second = dead(db, "s1"), dead(db, "s2")
    with db.as_app() as app:
        taken = ask_for(app, open_session(app, "s1"))
        assert (taken["run_uid"], taken["outcome"]) == (first, "resumed")
        interrupt(app, first, 2)
    assert [(row["run_uid"], row["attempt"]) for row in resumable(db)] == [(second, 1), (first, 2)]


@pytest.mark.parametrize("state", ["held", "settled", "awaiting", "closed"])
def test_what_no_worker_can_take_is_not_listed(db: Rented, state: str) -> None:
    with db.as_app() as app:
        session = open_session(app)
        run = start(app, session)
        if state == "settled":
            settle(app, run)
        elif state == "closed":
            interrupt(app, run)
            call(app, "close_session", session_uid=session, reason="done")
    if state == "awaiting":
        with db.as_engine() as engine:
            engine.execute("update durable.runs set status = 'awaiting', lease_holder = null")
    assert resumable(db) == []


def test_unverified_effects_are_counted_each_once_also_those_of_other_runs(db: Rented) -> None:
    run = dead(db, step=1)
    with db.as_app() as app:
        attempt = ask_for(app, open_session(app))["attempt"]
        assert begin(app, run, attempt, step=1)["outcome"] == "unverified"
        finish(app, begin(app, run, attempt, step=2)["effect_uid"], "unverified", attempt=attempt)
        finish(app, begin(app, run, attempt, step=3)["effect_uid"], attempt=attempt)
        other = start(app, open_session(app, "s2"))
        begin(app, other, intent="i")
        interrupt(app, other)
        begin(app, run, attempt, intent="i")
        interrupt(app, run, attempt)
    assert {row["run_uid"]: row["unverified"] for row in resumable(db)} == {run: 3, other: 1}
    with db.as_app() as app:
        (effect,) = (row["effect_uid"] for row in call_all(app, "list_effects") if row["intent"] == "i")
        resolve(app, effect)
    assert {row["run_uid"]: row["unverified"] for row in resumable(db)} == {run: 2, other: 0}
