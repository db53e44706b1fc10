"""D12, raia-live/amfs#363: the tenant was set on a pooled connection, and another request ran with it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from durable_pg import Durable, Identity
from durable_pg.errors import BadInput, CallCancelled, DurableError, SessionNotFound
from durable_pg.types import Session
from tests.client.ways import POOLS
from tests.support.calls import append, said
from tests.support.rented import Rented, nothing_written, stored

RAW = (
    "select from durable.events",
    "select from durable.sessions",
    "select durable.open_session(app_name => 'support', session_id => 's2')",
    "select durable.list_sessions()",
)


@contextmanager
def pool_of_one(url: str, **settings: Any) -> Iterator[ConnectionPool[Any]]:
    # Long enough for any call, and for a lock that is never let go.
    settings["options"] = "-c statement_timeout=1s"
    with ConnectionPool(url, min_size=1, max_size=1, open=False, kwargs=settings) as pool:
        yield pool


def succeed(db: Rented, me: Identity, session: Session) -> None:
    me.append_event(session, "user", said("hello"))


def be_refused(db: Rented, me: Identity, session: Session) -> None:
    me.get_state(session=uuid4())


def be_refused_before(db: Rented, me: Identity, session: Session) -> None:
    me.append_event(session, "user\0")


def time_out(db: Rented, me: Identity, session: Session) -> None:
    with db.as_app() as app:
        append(app, session.session_uid)
        me.append_event(session, "user", said("hello"))


ENDS: dict[Callable[[Rented, Identity, Session], Any], type[DurableError] | None] = {
    succeed: None,
    be_refused: SessionNotFound,
    be_refused_before: BadInput,
    time_out: CallCancelled,
}


@pytest.mark.parametrize("settings", POOLS.values(), ids=POOLS)
@pytest.mark.parametrize("end", ENDS)
def test_the_next_checkout_of_a_pool_of_one_has_no_identity_however_the_call_ended(
    db: Rented, end: Callable[[Rented, Identity, Session], Any], settings: dict[str, Any]
) -> None:
    with pool_of_one(db.url("app"), **settings) as pool:
        me = Durable(pool).act_as(db.tenant("T1"), "U1")
        session = me.open_session("support", "s1")
        before = backend(pool)
        expected = ENDS[end]
        if expected is None:
            end(db, me, session)
        else:
            with nothing_written(db), pytest.raises(expected):
                end(db, me, session)
        for statement in RAW:
            with nothing_written(db):
                assert sqlstate(pool, statement) == "42W01"
        assert backend(pool) == before, "the pool gave out another connection"
        assert (me.append_event(session, "user", said("again"))).outcome == "appended"


def sqlstate(pool: ConnectionPool[Any], statement: str) -> str | None:
    """Return how a statement is refused on the next connection."""
    with pool.connection() as connection:
        try:
            connection.execute(statement.encode())
        except psycopg.Error as error:
            connection.rollback()
            return error.sqlstate
    return None


def backend(pool: ConnectionPool[Any]) -> int:
    with pool.connection() as connection:
        pid: int = connection.info.backend_pid
    return pid


def test_one_connection_serves_one_person_after_the_other(db: Rented) -> None:
    with pool_of_one(db.url("app")) as pool:
        people = [Durable(pool).act_as(db.tenant("T1"), f"U{number}") for number in range(3)]
        sessions = [me.open_session("support", "main") for me in people]
        for _ in range(3):
            for me, session in zip(people, sessions, strict=True):
                me.append_event(session, "user", said(me.user_id))
        for me, session in zip(people, sessions, strict=True):
            assert [event.content for event in me.read_events(session)] == [said(me.user_id)] * 3
    assert [row["content"]["parts"][0]["text"] == row["user_id"] for row in stored(db, "events")] == [True] * 9


def test_an_identity_of_a_connection_is_not_taken_over_by_a_call(db: Rented) -> None:
    with pool_of_one(db.url("app")) as pool:
        with pool.connection() as connection:
            connection.execute("select durable.act_as(%s, 'U1')", (db.tenant("T1"),))
        Durable(pool).act_as(db.tenant("T1"), "U2").open_session("support", "s1")
    assert [row["user_id"] for row in stored(db, "sessions")] == ["U2"]
