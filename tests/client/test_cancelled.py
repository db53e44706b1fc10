"""Whoever stops waiting for a call: an asyncio task that is cancelled, a person who presses Ctrl-C."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from durable_pg import AsyncDurable, AsyncIdentity, Durable
from tests.client.disturbing import held, once_blocked
from tests.support.harness import Connection
from tests.support.rented import Rented, nothing_written, stored


@pytest_asyncio.fixture(params=({}, {"autocommit": True}), ids=("pool", "autocommit pool"))
async def pool(db: Rented, request: pytest.FixtureRequest) -> AsyncIterator[AsyncConnectionPool]:
    """A pool of one connection, which must be as good as new for the next call."""
    async with AsyncConnectionPool(
        db.url("app"), min_size=1, max_size=1, timeout=10, open=False, kwargs=request.param
    ) as pool:
        yield pool


@pytest_asyncio.fixture
async def me(db: Rented, pool: AsyncConnectionPool) -> AsyncIdentity:
    return AsyncDurable(pool).act_as(db.tenant("T1"), "U1")


async def facts(pool: AsyncConnectionPool) -> tuple[int, bool, str]:
    async with pool.connection() as connection:
        return connection.info.backend_pid, connection.autocommit, connection.info.transaction_status.name


async def test_a_cancelled_task_writes_nothing_and_gives_its_connection_back(
    db: Rented, pool: AsyncConnectionPool, me: AsyncIdentity
) -> None:
    before = await facts(pool)
    session = await me.open_session("support", "s-1")
    loop = asyncio.get_running_loop()
    with held(db, session.session_uid) as holder, nothing_written(db):
        task = asyncio.create_task(me.append_event(session, "agent", 1, event_id="evt-1"))

        def cancel_task(root: Connection, pid: int) -> None:
            loop.call_soon_threadsafe(task.cancel)

        with once_blocked(db, holder, cancel_task), pytest.raises(asyncio.CancelledError):
            await task
    assert await facts(pool) == before
    assert (await me.append_event(session, "agent", 1, event_id="evt-1")).outcome == "appended"
    assert len(stored(db, "events")) == 1


async def test_a_call_that_takes_too_long_for_its_caller_writes_nothing(
    db: Rented, pool: AsyncConnectionPool, me: AsyncIdentity
) -> None:
    before = await facts(pool)
    session = await me.open_session("support", "s-1")
    with held(db, session.session_uid), nothing_written(db), pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(me.append_event(session, "agent", 1, event_id="evt-1"), timeout=0.2)
    assert await facts(pool) == before
    assert (await me.append_event(session, "agent", 1, event_id="evt-1")).outcome == "appended"


async def test_a_cancelled_wait_for_a_connection_leaves_none_behind(
    db: Rented, pool: AsyncConnectionPool, me: AsyncIdentity
) -> None:
    async with pool.connection():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(me.open_session("support", "s-1"), timeout=0.1)
    assert (await me.open_session("support", "s-1")).outcome == "created"


async def test_calls_side_by_side_share_a_pool_and_none_is_lost(
    db: Rented, pool: AsyncConnectionPool, me: AsyncIdentity
) -> None:
    before = await facts(pool)
    session = await me.open_session("support", "s-1")
    tasks = [asyncio.create_task(me.append_event(session, "agent", number)) for number in range(20)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks[3::4]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    appended = {result.seq for result in results if not isinstance(result, BaseException)}
    assert len(appended) >= 15
    assert appended <= {row["seq"] for row in stored(db, "events")}
    assert await facts(pool) == before


def test_an_interrupted_call_writes_nothing_and_gives_its_connection_back(db: Rented) -> None:
    with ConnectionPool(db.url("app"), min_size=1, max_size=1, timeout=10, open=False) as pool:
        me = Durable(pool).act_as(db.tenant("T1"), "U1")
        session = me.open_session("support", "s-1")

        def press_ctrl_c(root: Connection, pid: int) -> None:
            signal.pthread_kill(threading.main_thread().ident or os.getpid(), signal.SIGINT)

        with (
            held(db, session.session_uid) as holder,
            nothing_written(db),
            once_blocked(db, holder, press_ctrl_c),
            pytest.raises(KeyboardInterrupt),
        ):
            me.append_event(session, "agent", 1, event_id="evt-1")
        with pool.connection() as connection:
            assert connection.autocommit is False
        assert me.append_event(session, "agent", 1, event_id="evt-1").outcome == "appended"
