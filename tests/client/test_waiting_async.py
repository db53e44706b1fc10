"""A call that waits for somebody else's transaction, and what may come in between."""

from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio
from psycopg_pool import AsyncConnectionPool
from sqlalchemy.ext.asyncio import create_async_engine

from durable_pg import AsyncDurable, AsyncIdentity
from durable_pg.errors import (
    CallCancelled,
    ConnectionLost,
    DurableError,
    IsolationRefused,
    LockTimeout,
    ReadOnly,
    TryAgain,
)
from durable_pg.types import Session
from tests.client.disturbing import cancel, held, once_blocked, runs, terminate, told, wait_until
from tests.client.ways import drivers_async
from tests.support.harness import Connection
from tests.support.rented import Rented, nothing_written, stored

TIMEOUTS = {
    "statement_timeout": (CallCancelled, "57014"),
    "lock_timeout": (LockTimeout, "55P03"),
}


def url(db: Rented, options: str = "", driver: str = "") -> str:
    address = db.url("app").replace("postgresql://", f"postgresql+{driver}://" if driver else "postgresql://")
    return f"{address}{'&' if '?' in address else '?'}options={options}" if options else address


@pytest_asyncio.fixture(params=({}, {"autocommit": True}), ids=("pool", "autocommit pool"))
async def pool_async(db: Rented, request: pytest.FixtureRequest) -> AsyncIterator[AsyncConnectionPool]:
    async with AsyncConnectionPool(url(db), min_size=1, max_size=1, open=False, kwargs=request.param) as pool:
        yield pool


@pytest_asyncio.fixture
async def me_async(db: Rented, pool_async: AsyncConnectionPool) -> AsyncIdentity:
    return AsyncDurable(pool_async).act_as(db.tenant("T1"), "U1")


@pytest_asyncio.fixture
async def session_async(me_async: AsyncIdentity) -> Session:
    return await me_async.open_session("support", "s-1")


def assert_told(error: DurableError, kind: type[DurableError], sqlstate: str | None, *, uncertain: bool) -> None:
    assert told(error) == (kind, uncertain, "append_event")
    # Older drivers have no SQLSTATE of a farewell (psycopg before 3.3), or one of their own (asyncpg's 08003).
    farewell = {None, "08003"} if psycopg.__version__ < "3.3" else set()
    assert error.sqlstate == sqlstate or error.sqlstate in farewell
    assert error.names["user_id"] == "U1"


@pytest.mark.parametrize("timeout", TIMEOUTS)
async def test_a_call_that_waits_for_too_long_is_undone(
    db: Rented, me_async: AsyncIdentity, session_async: Session, timeout: str
) -> None:
    kind, sqlstate = TIMEOUTS[timeout]
    address = url(db, f"-c%20{timeout}%3D100ms")
    async with AsyncDurable.from_url(address, max_size=1) as durable:
        caller = durable.act_as(db.tenant("T1"), "U1")
        with held(db, session_async.session_uid), nothing_written(db), pytest.raises(kind) as caught:
            await caller.append_event(session_async, "agent", 1, event_id="evt-1")
        assert_told(caught.value, kind, sqlstate, uncertain=False)
        assert "again" in caught.value.hint
        assert (await caller.append_event(session_async, "agent", 1, event_id="evt-1")).outcome == "appended"


async def test_a_cancelled_call_is_undone_and_its_connection_goes_on(
    db: Rented, pool_async: AsyncConnectionPool, me_async: AsyncIdentity, session_async: Session
) -> None:
    async with pool_async.connection() as connection:
        backend, autocommit = connection.info.backend_pid, connection.autocommit
    with (
        held(db, session_async.session_uid) as holder,
        nothing_written(db),
        pytest.raises(CallCancelled) as caught,
        once_blocked(db, holder, cancel),
    ):
        await me_async.append_event(session_async, "agent", 1, event_id="evt-1")
    assert_told(caught.value, CallCancelled, "57014", uncertain=False)
    async with pool_async.connection() as connection:
        assert (connection.info.backend_pid, connection.autocommit) == (backend, autocommit)
    assert (await me_async.append_event(session_async, "agent", 1)).outcome == "appended"


async def test_a_call_whose_backend_is_ended_may_have_taken_effect(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    with (
        held(db, session_async.session_uid) as holder,
        nothing_written(db),
        pytest.raises(ConnectionLost) as caught,
        once_blocked(db, holder, terminate),
    ):
        await me_async.append_event(session_async, "agent", 1)
    assert_told(caught.value, ConnectionLost, "57P01", uncertain=True)
    assert (await me_async.append_event(session_async, "agent", 1)).outcome == "appended"


async def test_a_call_whose_backend_is_ended_is_repeated_if_it_may_be(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    with held(db, session_async.session_uid) as holder:

        def terminate_and_let_go(root: Connection, pid: int) -> None:
            terminate(root, pid)
            holder.rollback()

        with once_blocked(db, holder, terminate_and_let_go):
            appended = await me_async.append_event(session_async, "agent", 1, event_id="evt-1")
    assert appended.outcome == "appended"
    assert len(stored(db, "events")) == 1


async def test_in_a_transaction_a_call_whose_backend_is_ended_goes_with_it(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    async with await psycopg.AsyncConnection.connect(url(db)) as connection:
        caller = AsyncDurable.on(connection).act_as(db.tenant("T1"), "U1")
        with (
            held(db, session_async.session_uid) as holder,
            nothing_written(db),
            pytest.raises(ConnectionLost) as caught,
            once_blocked(db, holder, terminate),
        ):
            await caller.open_session("support", "s-2")
            await caller.append_event(session_async, "agent", 1, event_id="evt-1")
        assert_told(caught.value, ConnectionLost, "57P01", uncertain=False)
        with pytest.raises(ConnectionLost) as caught:
            await caller.append_event(session_async, "agent", 1)
        assert_told(caught.value, ConnectionLost, None, uncertain=False)


async def test_in_autocommit_a_call_whose_backend_is_ended_may_have_taken_effect(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    async with await psycopg.AsyncConnection.connect(url(db), autocommit=True) as connection:
        caller = AsyncDurable.on(connection).act_as(db.tenant("T1"), "U1")
        with (
            held(db, session_async.session_uid) as holder,
            nothing_written(db),
            pytest.raises(ConnectionLost) as caught,
            once_blocked(db, holder, terminate),
        ):
            await caller.append_event(session_async, "agent", 1, event_id="evt-1")
        assert_told(caught.value, ConnectionLost, "57P01", uncertain=True)


async def test_a_transaction_that_was_idle_for_too_long_is_lost(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    address = url(db, "-c%20idle_in_transaction_session_timeout%3D50ms")
    async with await psycopg.AsyncConnection.connect(address) as connection:
        caller = AsyncDurable.on(connection).act_as(db.tenant("T1"), "U1")
        with nothing_written(db):
            await caller.append_event(session_async, "agent", 1)
            backend = connection.info.backend_pid
            wait_until(lambda: not runs(db, backend))
        with pytest.raises(ConnectionLost) as caught:
            await caller.append_event(session_async, "agent", 2)
        assert_told(caught.value, ConnectionLost, "25P03", uncertain=False)


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("driver", drivers_async)
async def test_on_a_connection_of_sqlalchemy_it_is_the_same(
    db: Rented, me_async: AsyncIdentity, session_async: Session, driver: str, autocommit: bool
) -> None:
    engine = create_async_engine(url(db, driver=driver))
    async with engine.connect() as connection:
        if autocommit:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
        caller = AsyncDurable.on(connection).act_as(db.tenant("T1"), "U1")
        with (
            held(db, session_async.session_uid) as holder,
            nothing_written(db),
            pytest.raises(ConnectionLost) as caught,
            once_blocked(db, holder, terminate),
        ):
            await caller.append_event(session_async, "agent", 1, event_id="evt-1")
        assert_told(caught.value, ConnectionLost, "57P01", uncertain=autocommit)
        with pytest.raises(ConnectionLost) as caught:
            await caller.append_event(session_async, "agent", 1)
        assert_told(caught.value, ConnectionLost, None, uncertain=False)
        await connection.rollback()
    await engine.dispose()


@pytest.mark.parametrize("driver", drivers_async)
async def test_on_a_connection_of_sqlalchemy_a_cancelled_call_is_told_too(
    db: Rented, me_async: AsyncIdentity, session_async: Session, driver: str
) -> None:
    engine = create_async_engine(url(db, driver=driver))
    async with engine.connect() as connection:
        caller = AsyncDurable.on(connection).act_as(db.tenant("T1"), "U1")
        with (
            held(db, session_async.session_uid) as holder,
            nothing_written(db),
            pytest.raises(CallCancelled) as caught,
            once_blocked(db, holder, cancel),
        ):
            await caller.append_event(session_async, "agent", 1)
        assert_told(caught.value, CallCancelled, "57014", uncertain=False)
        await connection.rollback()
        assert (await caller.append_event(session_async, "agent", 1)).outcome == "appended"
    await engine.dispose()


async def test_a_deadlock_is_to_be_tried_again(db: Rented, me_async: AsyncIdentity, session_async: Session) -> None:
    other = await me_async.open_session("support", "s-2")
    async with await psycopg.AsyncConnection.connect(url(db)) as connection:
        caller = AsyncDurable.on(connection).act_as(db.tenant("T1"), "U1")
        await caller.append_event(other, "agent", 1)

        with held(db, session_async.session_uid) as holder:

            def want_the_other(*_: object) -> None:
                # The one that is found out to be in a deadlock is the client's.
                holder.execute("select set_config('deadlock_timeout', '1h', false)")
                holder.execute("select from durable.sessions where session_uid = %s for update", (other.session_uid,))

            with nothing_written(db), pytest.raises(TryAgain) as caught, once_blocked(db, holder, want_the_other):
                try:
                    await caller.append_event(session_async, "agent", 1)
                finally:
                    await connection.rollback()
        assert_told(caught.value, TryAgain, "40P01", uncertain=False)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_in_a_stricter_isolation_a_newer_row_is_to_be_tried_again(
    db: Rented, me_async: AsyncIdentity, session_async: Session, level: str
) -> None:
    run = await me_async.start_run(session_async, "inv-1")
    async with await psycopg.AsyncConnection.connect(url(db)) as connection:
        await connection.execute(f"set transaction isolation level {level}".encode())
        caller = AsyncDurable.on(connection).act_as(db.tenant("T1"), "U1")
        await caller.read_events(session_async)
        await me_async.append_event(session_async, "agent", 1)
        with nothing_written(db), pytest.raises(TryAgain) as caught:
            await caller.append_event(session_async, "agent", 1)
        assert_told(caught.value, TryAgain, "40001", uncertain=False)
        await connection.rollback()
        await connection.execute(f"set transaction isolation level {level}".encode())
        with nothing_written(db), pytest.raises(IsolationRefused) as refused:
            await caller.settle_run(run, "succeeded")
        assert told(refused.value) == (IsolationRefused, False, "settle_run")


async def test_where_nothing_may_be_written_a_call_says_so(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    async with AsyncDurable.from_url(url(db, "-c%20default_transaction_read_only%3Don"), max_size=1) as durable:
        caller = durable.act_as(db.tenant("T1"), "U1")
        assert await caller.read_events(session_async) == []
        with nothing_written(db), pytest.raises(ReadOnly, match="read-only") as caught:
            await caller.append_event(session_async, "agent", 1)
        assert_told(caught.value, ReadOnly, "25006", uncertain=False)
