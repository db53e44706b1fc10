"""D12: a call that its caller gave up, or somebody else cancelled, leaves no identity on the pooled connection."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from durable_pg import AsyncDurable, Durable
from durable_pg.errors import CallCancelled
from durable_pg.types import Session
from tests.support.calls import append
from tests.support.harness import Connection, wait_until_blocked
from tests.support.rented import Rented, stored

EVENTS = "select from durable.events"


@pytest.fixture
def session(db: Rented) -> Session:
    with Durable.from_url(db.url("app"), max_size=1) as durable:
        return durable.act_as(db.tenant("T1"), "U1").open_session("support", "s1")


@pytest.fixture
def holder(db: Rented, session: Session) -> Iterator[Connection]:
    """Another client, in the middle of a transaction that holds the session."""
    with db.as_app() as app:
        append(app, session.session_uid)
        yield app
        app.rollback()


async def test_a_call_whose_task_was_cancelled(db: Rented, session: Session, holder: Connection) -> None:
    async with AsyncConnectionPool(db.url("app"), min_size=1, max_size=1, open=False) as pool:
        me = AsyncDurable(pool).act_as(db.tenant("T1"), "U1")
        async with pool.connection() as connection:
            waiter = connection
        task = asyncio.create_task(me.append_event(session, "agent"))
        # Only its pid is asked for.
        await asyncio.to_thread(wait_until_blocked, db, waiter, by=holder)  # type: ignore[arg-type]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(psycopg.Error) as refusal:
            async with pool.connection() as connection:
                await connection.execute(EVENTS)
        assert refusal.value.sqlstate == "42W01"
        holder.rollback()
        assert (await me.append_event(session, "agent")).seq == 1
    assert len(stored(db, "events")) == 1


def test_a_call_that_somebody_cancelled_on_the_server(db: Rented, session: Session, holder: Connection) -> None:
    with (
        ConnectionPool(db.url("app"), min_size=1, max_size=1, open=False) as pool,
        ThreadPoolExecutor(1) as thread,
    ):
        me = Durable(pool).act_as(db.tenant("T1"), "U1")
        with pool.connection() as waiter:
            pass
        waiting = thread.submit(me.append_event, session, "agent")
        # Only its pid is asked for.
        wait_until_blocked(db, waiter, by=holder)  # type: ignore[arg-type]
        with db.superuser() as root:
            root.execute("select pg_cancel_backend(%s)", (waiter.info.backend_pid,))
        with pytest.raises(CallCancelled) as cancelled:
            waiting.result(10)
        assert not cancelled.value.may_have_taken_effect
        with pytest.raises(psycopg.Error) as refusal, pool.connection() as connection:
            assert connection.info.backend_pid == waiter.info.backend_pid
            connection.execute(EVENTS)
        assert refusal.value.sqlstate == "42W01"
        holder.rollback()
        assert me.append_event(session, "agent").seq == 1
    assert len(stored(db, "events")) == 1
