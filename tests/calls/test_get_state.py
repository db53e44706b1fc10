"""get_state merges a session's state with the shared ones."""

from tests.support.calls import append, call, open_session
from tests.support.harness import refused
from tests.support.rented import Rented


def test_without_a_session_the_shared_keys_are_read_alone_and_there_is_no_revision(db: Rented) -> None:
    with db.as_app() as app:
        append(app, open_session(app), state_delta={"a": 1, "app:b": 2, "user:c": 3})
        assert call(app, "get_state", app_name="support") == {"state": {"app:b": 2, "user:c": 3}, "revision": None}
        assert call(app, "get_state", app_name="never") == {"state": {}, "revision": None}


def test_state_of_neither_a_session_nor_an_app_is_refused(db: Rented) -> None:
    with refused("22W01", match="app_name is missing"), db.as_app() as app:
        call(app, "get_state")


def test_a_session_of_another_app_is_not_found(db: Rented) -> None:
    with refused("42W04"), db.as_app() as app:
        call(app, "get_state", app_name="other", session_uid=open_session(app))
