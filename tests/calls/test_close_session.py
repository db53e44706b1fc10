"""close_session hides a session and frees its name."""

from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from tests.support.calls import call, call_all, events, open_session, say, settle, start
from tests.support.harness import Connection, refused
from tests.support.rented import Rented, nothing_written, stored


def close(app: Connection, session: UUID, reason: str | None = None) -> dict[str, object]:
    return call(app, "close_session", session_uid=session, reason=reason)


REFUSED: dict[str, Callable[[Connection, UUID], object]] = {
    "append_event": lambda app, uid: say(app, uid, "new"),
    "append_event, a repeat": lambda app, uid: say(app, uid, "old", event_id="e1"),
    "read_events": events,
    "get_state": lambda app, uid: call(app, "get_state", session_uid=uid),
    "start_run": start,
}


def test_closing_says_when_and_keeps_the_reason(db: Rented) -> None:
    with db.as_app() as app:
        closed = close(app, open_session(app), "done")
    (row,) = stored(db, "sessions")
    assert closed["outcome"] == "closed"
    assert closed["closed_at"] == row["closed_at"] is not None
    assert row["close_reason"] == "done"


def test_closing_again_is_told_so_and_changes_nothing(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        closed = close(app, session, "first")
    with nothing_written(db), db.as_app() as app:
        assert close(app, session, "second") == {**closed, "outcome": "already_closed"}


def test_the_name_of_a_closed_session_is_free_again(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app, state={"a": 1})
        close(app, session)
        opened = call(app, "open_session", app_name="support", session_id="s1", state={"b": 2})
    assert opened["outcome"] == "created"
    assert opened["session_uid"] != session
    assert opened["state"] == {"b": 2}


@pytest.mark.parametrize("name", REFUSED)
def test_a_closed_session_refuses_and_says_when_and_why_it_was_closed(db: Rented, name: str) -> None:
    with db.as_app() as app:
        session = open_session(app)
        say(app, session, "old", event_id="e1")
        close(app, session, "done")
    with nothing_written(db), refused("55W01") as refusal, db.as_app() as app:
        REFUSED[name](app, session)
    assert str(refusal.diag.message_detail).endswith("reason: done")


def test_the_events_of_a_closed_session_stay_and_can_be_verified(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        say(app, session)
        close(app, session)
        assert call(app, "verify_session", session_uid=session)["intact"]
    assert len(stored(db, "events")) == 1


def test_a_run_of_a_closed_session_can_still_be_settled(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        run = start(app, session)
        close(app, session)
        assert settle(app, run)["outcome"] == "settled"


def test_a_session_that_never_was_can_not_be_closed(db: Rented) -> None:
    with nothing_written(db), refused("42W04"), db.as_app() as app:
        close(app, uuid4())


def test_a_missing_session_uid_is_refused(db: Rented) -> None:
    for function in ("close_session", "read_events", "verify_session"):
        with nothing_written(db), refused("22W03", match="session_uid is missing"), db.as_app() as app:
            call_all(app, function)


def test_a_reason_has_at_most_2000_characters(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
    with nothing_written(db), refused("22W03", match="reason has 2001 characters"), db.as_app() as app:
        close(app, session, "x" * 2001)
    with db.as_app() as app:
        assert close(app, session, "x" * 2000)["outcome"] == "closed"
