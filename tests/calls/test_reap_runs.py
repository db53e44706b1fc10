"""list_resumable and reap_runs: the maintainer sees which runs nobody executes, and nothing of what is said."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from tests.support.calls import call, call_all, open_session, say, settle, start
from tests.support.harness import Connection, refused
from tests.support.ledger import SHORT, ask_for, begin, finish, interrupt, resolve, wait_until_over
from tests.support.rented import Rented, nothing_written, stored


@pytest.fixture(autouse=True)
def _nobody_elses(db: Rented) -> Iterator[None]:
    """Leave no open run behind: the maintainer sees those of all tests."""
    yield
    with db.superuser() as root:
        open_runs = "select tenant_id, user_id, run_uid from durable.runs where settled_at is null"
        found = root.execute(open_runs).fetchall()
    for row in found:
        with db.connect("app") as app:
            app.execute("select durable.act_as(%s, %s)", (row["tenant_id"], row["user_id"]))
            call(app, "cancel_run", run_uid=row["run_uid"], reason="the test is over")


def dead(db: Rented, name: str = "s1", user: str = "U1", tenant: str = "T1", **effect: Any) -> UUID:
    """Start a run, begin an effect if one is described, and let the lease run out."""
    with db.as_app(tenant, user) as app:
        started = ask_for(app, open_session(app, name), lease=SHORT)
        over: datetime = started["lease_expires_at"]
        if effect:
            over = max(over, begin(app, started["run_uid"], **effect)["lease_expires_at"])
    wait_until_over(db, over)
    found = started["run_uid"]
    assert isinstance(found, UUID)
    return found


def resumable(db: Rented, **more: Any) -> list[dict[str, Any]]:
    with nothing_written(db), db.as_maintainer() as maintainer:
        return call_all(maintainer, "list_resumable", **more)


def reap(db: Rented, **more: Any) -> dict[str, int]:
    with db.as_maintainer() as maintainer:
        return call(maintainer, "reap_runs", **more)


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


def test_a_dead_run_becomes_interrupted_and_what_it_had_begun_unverified(db: Rented) -> None:
    run = dead(db, step=1)
    lease = stored(db, "runs")[0]["lease_expires_at"]
    assert reap(db) == {"runs": 1, "effects": 1, "skipped": 0}
    (row,) = stored(db, "runs")
    assert (row["status"], row["lease_holder"], row["attempt"], row["tools_executed"]) == ("interrupted", None, 1, None)
    assert (row["run_uid"], row["lease_expires_at"]) == (run, lease)
    assert stored(db, "effects")[0]["status"] == "unverified"
    (listed,) = resumable(db)
    assert (listed["status"], listed["since"]) == ("interrupted", lease)


def test_each_leaves_an_audit_row(db: Rented) -> None:
    run = dead(db, step=1)
    reap(db)
    (row,) = stored(db, "audit_log")
    assert (row["action"], row["login"], row["acted_by"]) == ("reap_runs", "maintainer", None)
    assert (row["subject_kind"], row["subject_uid"]) == ("run", run)
    assert (row["detail"]["attempt"], row["detail"]["effects_unverified"]) == (1, 1)


def test_reaping_again_finds_nothing(db: Rented) -> None:
    dead(db, step=1)
    reap(db)
    with nothing_written(db):
        assert reap(db) == {"runs": 0, "effects": 0, "skipped": 0}


def test_living_and_settled_runs_are_left_alone(db: Rented) -> None:
    with db.as_app() as app:
        begin(app, start(app, open_session(app)))
        settle(app, start(app, open_session(app, "s2")))
    with nothing_written(db):
        assert reap(db) == {"runs": 0, "effects": 0, "skipped": 0}


def test_an_effect_that_was_given_a_longer_lease_is_left_to_its_worker(db: Rented) -> None:
    with db.as_app() as app:
        started = ask_for(app, open_session(app), lease=SHORT)
        begin(app, started["run_uid"], lease="1 hour")
    wait_until_over(db, started["lease_expires_at"])
    assert reap(db) == {"runs": 1, "effects": 0, "skipped": 0}
    assert stored(db, "effects")[0]["status"] == "begun"


def test_a_limit_leaves_the_rest_for_the_next_call(db: Rented) -> None:
    for name in ("s1", "s2", "s3"):
        dead(db, name)
    assert [reap(db, max_runs=2)["runs"] for _ in range(3)] == [2, 1, 0]


def test_a_run_that_somebody_has_locked_is_skipped_and_counted(db: Rented) -> None:
    dead(db, "s1")
    dead(db, "s2")
    with db.as_app() as app:
        # Taken, and not committed.
        assert ask_for(app, open_session(app, "s1"))["outcome"] == "resumed"
        assert reap(db) == {"runs": 1, "effects": 0, "skipped": 1}
    assert sorted(row["status"] for row in stored(db, "runs")) == ["interrupted", "running"]


def test_an_effect_that_somebody_has_locked_does_not_stop_the_sweep(db: Rented) -> None:
    run = dead(db, step=1)
    with db.as_app() as app:
        (effect,) = (row["effect_uid"] for row in call_all(app, "list_effects"))
        finish(app, effect)
        with db.as_maintainer() as maintainer:
            maintainer.execute("set local lock_timeout = '500ms'")
            assert call(maintainer, "reap_runs")["runs"] == 1
    assert [row["status"] for row in stored(db, "runs") if row["run_uid"] == run] == ["interrupted"]


@pytest.mark.parametrize("function", ["list_resumable", "reap_runs"])
@pytest.mark.parametrize("size", [None, 0, -1, 10_001])
def test_a_batch_is_1_to_10000(db: Rented, function: str, size: int | None) -> None:
    with nothing_written(db), refused("22W03", match="max_runs"), db.as_maintainer() as maintainer:
        call_all(maintainer, function, max_runs=size)


@pytest.mark.parametrize("function", ["list_resumable", "reap_runs"])
def test_only_the_maintainer_looks_across_tenants(db: Rented, function: str) -> None:
    def tried(connection: Connection) -> None:
        call_all(connection, function)

    for connected in (db.as_app, db.as_operator, db.as_auditor):
        with nothing_written(db), refused("42501"), connected() as connection:
            tried(connection)
