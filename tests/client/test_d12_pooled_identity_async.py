"""D12, raia-live/amfs#363: the tenant was set on a pooled connection, and another request ran with it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool

from durable_pg import AsyncDurable, AsyncIdentity
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


@asynccontextmanager
async def pool_of_one_async(url: str, **settings: Any) -> AsyncIterator[AsyncConnectionPool[Any]]:
    # Long enough for any call, and for a lock that is never let go.
    settings["options"] = "-c statement_timeout=1s"
    async with AsyncConnectionPool(url, min_size=1, max_size=1, open=False, kwargs=settings) as pool:
        yield pool


async def succeed_async(db: Rented, me: AsyncIdentity, session: Session) -> None:
    await me.append_event(session, "user", said("hello"))


async def be_refused_async(db: Rented, me: AsyncIdentity, session: Session) -> None:
    await me.get_state(session=uuid4())


async def be_refused_before_async(db: Rented, me: AsyncIdentity, session: Session) -> None:
    await me.append_event(session, "user\0")


async def time_out_async(db: Rented, me: AsyncIdentity, session: Session) -> None:
    with db.as_app() as app:
        append(app, session.session_uid)
        await me.append_event(session, "user", said("hello"))


ENDS: dict[Callable[[Rented, AsyncIdentity, Session], Any], type[DurableError] | None] = {
    succeed_async: None,
    be_refused_async: SessionNotFound,
    be_refused_before_async: BadInput,
    time_out_async: CallCancelled,
}


@pytest.mark.parametrize("settings", POOLS.values(), ids=POOLS)
@pytest.mark.parametrize("end", ENDS)
async def test_the_next_checkout_of_a_pool_of_one_has_no_identity_however_the_call_ended(
    db: Rented, end: Callable[[Rented, AsyncIdentity, Session], Any], settings: dict[str, Any]
) -> None:
    async with pool_of_one_async(db.url("app"), **settings) as pool:
        me = AsyncDurable(pool).act_as(db.tenant("T1"), "U1")
        session = await me.open_session("support", "s1")
        before = await backend_async(pool)
        expected = ENDS[end]
        if expected is None:
            await end(db, me, session)
        else:
            with nothing_written(db), pytest.raises(expected):
                await end(db, me, session)
        for statement in RAW:
            with nothing_written(db):
                assert await sqlstate_async(pool, statement) == "42W01"
        assert await backend_async(pool) == before, "the pool gave out another connection"
        assert (await me.append_event(session, "user", said("again"))).outcome == "appended"


async def sqlstate_async(pool: AsyncConnectionPool[Any], statement: str) -> str | None:
    """Return how a statement is refused on the next connection."""
    async with pool.connection() as connection:
        try:
            await connection.execute(statement.encode())
        except psycopg.Error as error:
            await connection.rollback()
            return error.sqlstate
    return None


async def backend_async(pool: AsyncConnectionPool[Any]) -> int:
    async with pool.connection() as connection:
        pid: int = connection.info.backend_pid
    return pid


async def test_one_connection_serves_one_person_after_the_other(db: Rented) -> None:
    async with pool_of_one_async(db.url("app")) as pool:
        people = [AsyncDurable(pool).act_as(db.tenant("T1"), f"U{number}") for number in range(3)]
        sessions = [await me.open_session("support", "main") for me in people]
        for _ in range(3):
            for me, session in zip(people, sessions, strict=True):
                await me.append_event(session, "user", said(me.user_id))
        for me, session in zip(people, sessions, strict=True):
            assert [event.content for event in await me.read_events(session)] == [said(me.user_id)] * 3
    assert [row["content"]["parts"][0]["text"] == row["user_id"] for row in stored(db, "events")] == [True] * 9


async def test_an_identity_of_a_connection_is_not_taken_over_by_a_call(db: Rented) -> None:
    async with pool_of_one_async(db.url("app")) as pool:
        async with pool.connection() as connection:
            await connection.execute("select durable.act_as(%s, 'U1')", (db.tenant("T1"),))
        await AsyncDurable(pool).act_as(db.tenant("T1"), "U2").open_session("support", "s1")
    assert [row["user_id"] for row in stored(db, "sessions")] == ["U2"]
