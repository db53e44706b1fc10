"""State: app: and user: keys are shared, temp: keys are stored nowhere, later keys win."""

from typing import Any

import pytest
from psycopg import sql

from tests.support.calls import append, call, open_session, say, state
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored


def test_a_delta_is_split_by_prefix(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        append(app, session, state_delta={"a": 1, "app:b": 2, "user:c": 3, "temp:d": 4})
        assert state(app, session) == {"a": 1, "app:b": 2, "user:c": 3}
    assert [row["state"] for row in stored(db, "sessions")] == [{"a": 1}]
    assert [row["state"] for row in stored(db, "app_states")] == [{"b": 2}]
    assert [row["state"] for row in stored(db, "user_states")] == [{"c": 3}]


def test_another_session_of_the_user_sees_the_shared_keys(db: Rented) -> None:
    with db.as_app() as app:
        append(app, open_session(app, "s1"), state_delta={"a": 1, "app:b": 2, "user:c": 3})
        assert state(app, open_session(app, "s2")) == {"app:b": 2, "user:c": 3}


def test_another_user_sees_the_keys_of_the_app_alone(db: Rented) -> None:
    with db.as_app() as app:
        append(app, open_session(app), state_delta={"a": 1, "app:b": 2, "user:c": 3})
    with db.as_app(user="U2") as app:
        assert state(app, open_session(app)) == {"app:b": 2}


def test_another_app_sees_nothing(db: Rented) -> None:
    with db.as_app() as app:
        append(app, open_session(app), state_delta={"a": 1, "app:b": 2, "user:c": 3})
        assert state(app, open_session(app, app_name="other")) == {}


def test_later_keys_win_and_whole_values_are_replaced(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app, state={"a": {"b": 1}, "k": 1, "app:a": [1]})
        append(app, session, state_delta={"a": {"c": 2}, "app:a": [2]})
        append(app, session, state_delta={"k": None})
        assert state(app, session) == {"a": {"c": 2}, "k": None, "app:a": [2]}


@pytest.mark.parametrize("delta", [{}, {"temp:x": 1}])
def test_a_delta_of_nothing_leaves_the_shared_rows_alone(db: Rented, delta: dict[str, Any]) -> None:
    with db.as_app() as app:
        append(app, open_session(app), state_delta=delta)
    assert [row["revision"] for table in ("app_states", "user_states") for row in stored(db, table)] == [0, 0]


@pytest.mark.parametrize("key", ["app:", "user:", "App:x", "apple", "temporary", "x:temp:", ""])
def test_an_odd_key_reads_back_as_it_was_written(db: Rented, key: str) -> None:
    with db.as_app() as app:
        session = open_session(app)
        append(app, session, state_delta={key: 1})
        assert state(app, session) == {key: 1}


def test_a_temp_key_is_stored_nowhere(db: Rented) -> None:
    hidden = "8d1f-never-to-be-seen"
    with db.as_app() as app:
        session = open_session(app, state={"temp:a": hidden, "kept": 1})
        append(app, session, state_delta={f"temp:{hidden}": hidden})
        say(app, session, state_delta={"temp:a": {"b": hidden}, "user:kept": 1})
    with db.superuser() as root:
        tables = root.execute(
            "select relname from pg_class where relnamespace = 'durable'::regnamespace and relkind = 'r'"
        )
        names = [row["relname"] for row in tables.fetchall()]
        assert "sessions" in names
        for name in names:
            found = root.execute(
                sql.SQL("select t.* from {} as t where t::text like %s").format(sql.Identifier("durable", name)),
                (f"%{hidden}%",),
            ).fetchall()
            assert found == [], name


def test_a_repeated_event_applies_its_delta_once(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        say(app, session, state_delta={"a": 1, "app:n": 1, "user:n": 1})
        append(app, session, state_delta={"a": 2, "app:n": 2, "user:n": 2})
    with nothing_written(db), db.as_app() as app:
        assert say(app, session, state_delta={"a": 1, "app:n": 1, "user:n": 1})["outcome"] == "duplicate"


def test_a_refused_append_applies_no_delta(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        say(app, session)
    with nothing_written(db), refused("23W06"), db.as_app() as app:
        say(app, session, "other words", state_delta={"a": 1, "app:a": 1, "user:a": 1})


@pytest.mark.parametrize("delta", ["[]", "null", "1", '"a"'])
def test_a_delta_that_is_no_object_is_refused(db: Rented, delta: str) -> None:
    with db.as_app() as app:
        session = open_session(app)
    with nothing_written(db), refused("22W03", match="state_delta is a JSON"), db.as_app() as app:
        append(app, session, state_delta=delta)


def test_the_revision_of_the_state_is_that_of_the_session(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        for revision in range(3):
            assert call(app, "get_state", session_uid=session)["revision"] == revision
            append(app, session)


def test_a_large_delta_is_merged_whole(db: Rented) -> None:
    delta = {f"k{number}": "x" * 1000 for number in range(3000)}
    with db.as_app() as app:
        session = open_session(app, state={"first": 1})
        append(app, session, state_delta=delta)
        assert state(app, session) == {"first": 1, **delta}
