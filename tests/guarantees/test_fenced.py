"""Rule fenced: what an attempt other than the run's current one says is refused, and writes nothing."""

from typing import Any

import pytest

from tests.guarantees._world import World, call, unchanged
from tests.harness import Database, refused, rows


@pytest.mark.parametrize("attempt", [0, 2, -1])
def test_another_attempt_appends_nothing(db: Database, attempt: int) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("55W04"), db.as_app() as app:
        say: dict[str, Any] = {"author": "agent", "content": "{}", "invocation_id": "inv-2"}
        call(app, "append_event", session_uid=mine.session, attempt=attempt, state_delta='{"a": 2}', **say)


@pytest.mark.parametrize("attempt", [0, 2, -1])
def test_another_attempt_settles_nothing(db: Database, attempt: int) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("55W04"), db.as_app() as app:
        call(app, "settle_run", status="succeeded", run_uid=mine.running, attempt=attempt)


def test_an_attempt_of_no_run_appends_nothing(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("55W04", match="no run"), db.as_app() as app:
        say: dict[str, Any] = {"author": "agent", "content": "{}", "invocation_id": "never-started"}
        call(app, "append_event", session_uid=mine.session, attempt=1, **say)


def test_the_current_attempt_writes(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        say: dict[str, Any] = {"author": "agent", "content": "{}", "invocation_id": "inv-2"}
        seq = call(app, "append_event", session_uid=mine.session, attempt=1, **say)["seq"]
        call(app, "settle_run", status="succeeded", run_uid=mine.running, attempt=1)
    (event,) = [row for row in rows(db, "events") if row["session_uid"] == mine.session and row["seq"] == seq]
    assert event["attempt"] == 1


def test_a_stale_revision_appends_nothing(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db):
        for revision in (0, 5, 7):
            with refused("55W02"), db.as_app() as app:
                say: dict[str, Any] = {"author": "agent", "content": "{}", "occurred_at": "2999-01-01"}
                call(app, "append_event", session_uid=mine.session, expected_revision=revision, **say)


def test_an_attempt_is_positive(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("23514", constraint="runs_attempt_is_positive"), db.superuser() as root:
        root.execute("update durable.runs set attempt = 0 where run_uid = %s", (mine.running,))
