"""reap_runs marks what nobody executes any more, all tenants' alike."""

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
    open_session,
    settle,
    start,
    wait_until_over,
)
from tests.support.harness import Connection, refused
from tests.support.rented import Rented, nothing_written, stored


@pytest.fixture(autouse=True)
def _nobody_elses(db: Rented) -> Iterator[None]:
    yield
    cancel_open_runs(db)


def resumable(db: Rented, **more: Any) -> list[dict[str, Any]]:
    with nothing_written(db), db.as_maintainer() as maintainer:
        return call_all(maintainer, "list_resumable", **more)


def reap(db: Rented, **more: Any) -> dict[str, int]:
    with db.as_maintainer() as maintainer:
        return call(maintainer, "reap_runs", **more)


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
