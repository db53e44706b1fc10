"""list_sessions shows the open ones, newest activity first."""

from uuid import UUID

from tests.support.calls import call, call_all, open_session, say
from tests.support.harness import Connection
from tests.support.rented import Rented


def close(app: Connection, session: UUID, reason: str | None = None) -> dict[str, object]:
    return call(app, "close_session", session_uid=session, reason=reason)


def names(app: Connection, **more: str) -> list[str]:
    return [row["session_id"] for row in call_all(app, "list_sessions", **more)]


def test_open_sessions_are_listed_newest_activity_first_and_closed_ones_are_not(db: Rented) -> None:
    with db.as_app() as app:
        sessions = {name: open_session(app, name) for name in ("a", "b", "c")}
        close(app, sessions["b"])
        say(app, sessions["a"])
        assert names(app) == ["a", "c"]


def test_sessions_of_one_app_can_be_listed_alone(db: Rented) -> None:
    with db.as_app() as app:
        open_session(app, "a", app_name="one")
        open_session(app, "b", app_name="two")
        assert names(app, app_name="two") == ["b"]
        assert names(app, app_name="three") == []


def test_listed_sessions_are_as_open_session_returned_them(db: Rented) -> None:
    with db.as_app() as app:
        opened = call(app, "open_session", app_name="support", session_id="s1", state={"a\0": 1})
        assert call(app, "list_sessions") == {**opened, "outcome": "open"}
