"""open_session creates a session or finds the open one of that name, and never loses what its caller said."""

from typing import Any

import pytest

from tests.support.calls import call, open_session
from tests.support.harness import refused, value
from tests.support.rented import Rented, nothing_written, stored


def test_a_new_session_is_created_and_found_by_its_name(db: Rented) -> None:
    with db.as_app() as app:
        created = call(app, "open_session", app_name="support", session_id="s1", state={"a": 1})
    with db.as_app(login="app2") as app:
        found = call(app, "open_session", app_name="support", session_id="s1", state={"a": 1})
    assert created["outcome"] == "created"
    assert found == {**created, "outcome": "found"}


def test_a_new_session_is_empty_and_open(db: Rented) -> None:
    with db.as_app() as app:
        row = call(app, "open_session", app_name="support", session_id="s1")
    expected = {"app_name": "support", "user_id": "U1", "session_id": "s1", "state": {}, "revision": 0, "last_seq": 0}
    assert {name: row[name] for name in expected} == expected
    assert row["closed_at"] is None


def test_finding_a_session_writes_nothing(db: Rented) -> None:
    with db.as_app() as app:
        open_session(app, state={"a": 1})
    with nothing_written(db), db.as_app() as app:
        open_session(app)


def test_a_session_without_a_name_is_named_by_its_uid_and_new_each_time(db: Rented) -> None:
    with db.as_app() as app:
        rows = [call(app, "open_session", app_name="support") for _ in range(2)]
    assert [row["outcome"] for row in rows] == ["created"] * 2
    assert all(row["session_id"] == str(row["session_uid"]) for row in rows)


def test_the_same_name_in_another_app_is_another_session(db: Rented) -> None:
    with db.as_app() as app:
        assert open_session(app, app_name="a") != open_session(app, app_name="b")


@pytest.mark.parametrize("state", [{"a": 2}, {}, {"a": 1, "b": 2}, {"a": "1"}])
def test_another_initial_state_is_refused(db: Rented, state: dict[str, Any]) -> None:
    with db.as_app() as app:
        open_session(app, state={"a": 1})
    with nothing_written(db), refused("23W09", match="was opened with another state"), db.as_app() as app:
        open_session(app, state=state)


def test_an_initial_state_for_a_session_that_was_opened_without_one_is_refused(db: Rented) -> None:
    with db.as_app() as app:
        open_session(app)
    with nothing_written(db), refused("23W09"), db.as_app() as app:
        open_session(app, state={"a": 1})


def test_the_initial_state_repeats_even_after_the_state_has_changed(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app, state={"a": 1})
        call(app, "append_event", session_uid=session, author="a", state_delta={"a": 2})
        found = call(app, "open_session", app_name="support", session_id="s1", state={"a": 1})
    assert (found["outcome"], found["state"]) == ("found", {"a": 2})


def test_an_initial_state_is_the_same_in_any_order_and_spacing(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app, state='{"a": 1, "b": [1, 2.0]}')
        assert open_session(app, state='{ "b":[1,2.0],"a":1}') == session


@pytest.mark.parametrize("state", ["[]", "null", "1", '"a"', "true"])
def test_a_state_that_is_no_object_is_refused(db: Rented, state: str) -> None:
    with nothing_written(db), refused("22W03", match="it has to be an object"), db.as_app() as app:
        open_session(app, state=state)


@pytest.mark.parametrize("name", ["", " ", " s1", "s1\n", "x" * 513])
@pytest.mark.parametrize("field", ["app_name", "session_id"])
def test_a_bad_name_is_refused(db: Rented, field: str, name: str) -> None:
    names = {"app_name": "support", "session_id": "s1", field: name}
    with nothing_written(db), refused("22W01", match=field), db.as_app() as app:
        call(app, "open_session", **names)


def test_a_missing_app_name_is_refused(db: Rented) -> None:
    with nothing_written(db), refused("22W01", match="app_name is missing"), db.as_app() as app:
        call(app, "open_session", session_id="s1")


def test_every_session_has_its_state_rows(db: Rented) -> None:
    with db.as_app() as app:
        open_session(app)
    for table in ("app_states", "user_states"):
        (row,) = stored(db, table)
        assert (row["app_name"], row["state"], row["revision"]) == ("support", {}, 0)


def test_a_refused_open_leaves_no_state_rows(db: Rented) -> None:
    with nothing_written(db), refused("22W02"), db.as_app() as app:
        open_session(app, state='{"a": 1e200000}')


def test_a_large_state_is_stored_whole(db: Rented) -> None:
    state = {f"k{number}": "x" * 1000 for number in range(2000)}
    with db.as_app() as app:
        session = open_session(app, state={**state, "app:big": state})
        assert value(app, "select state from durable.get_state(session_uid => %s)", session) == {
            **state,
            "app:big": state,
        }
