"""Pools: connections that died while idle, none free, no server behind them, not open."""

import time
from collections.abc import Iterator

import pytest
from psycopg_pool import AsyncConnectionPool, AsyncNullConnectionPool

from durable_pg import AsyncDurable
from durable_pg.errors import CannotConnect, ConnectionLost, PoolExhausted, PoolNotOpen
from tests.client.disturbing import terminate_all, told
from tests.client.fake_server import report
from tests.client.proxy import Proxy, in_front_of
from tests.support.rented import Rented, nothing_written, stored


@pytest.fixture
def proxy(db: Rented) -> Iterator[Proxy]:
    with in_front_of(db) as proxy:
        yield proxy


async def test_a_call_sends_nothing_on_connections_that_died_while_idle(db: Rented, proxy: Proxy) -> None:
    async with AsyncConnectionPool(proxy.url(), min_size=5, max_size=5, open=False) as pool:
        me = AsyncDurable(pool).act_as(db.tenant("T1"), "U1")
        session = await me.open_session("support", "s-1")
        await pool.wait()
        assert terminate_all(db) == 5
        proxy.wait_until_told("farewell", 5)
        proxy.forget()
        await me.append_event(session, "agent", 1)
        assert len(proxy.statements) == 1
    assert len(stored(db, "events")) == 1


async def test_a_farewell_is_heard_though_the_stream_has_not_ended(db: Rented, proxy: Proxy) -> None:
    async with AsyncConnectionPool(proxy.url(), min_size=1, max_size=1, open=False) as pool:
        me = AsyncDurable(pool).act_as(db.tenant("T1"), "U1")
        session = await me.open_session("support", "s-1")
        proxy.hides_ends = True
        terminate_all(db)
        proxy.wait_until_told("farewell")
        await me.append_event(session, "agent", 1)
    assert len(stored(db, "events")) == 1


async def test_what_a_living_connection_has_to_say_does_not_end_it(db: Rented, proxy: Proxy) -> None:
    async with AsyncConnectionPool(
        proxy.url(), min_size=1, max_size=1, open=False, kwargs={"autocommit": True}
    ) as pool:
        async with pool.connection() as connection:
            await connection.execute("listen told")
            backend = connection.info.backend_pid
        with db.superuser() as root:
            root.execute("notify told, 'something'")
        proxy.wait_until_told("notification")
        proxy.say(report(b"N", "WARNING", "01000", "collation version mismatch"))
        await AsyncDurable(pool).act_as(db.tenant("T1"), "U1").open_session("support")
        async with pool.connection() as connection:
            assert connection.info.backend_pid == backend


async def test_a_pool_without_a_free_connection_is_exhausted(db: Rented) -> None:
    async with AsyncConnectionPool(db.url("app"), min_size=1, max_size=1, timeout=0.2, open=False) as pool:
        me = AsyncDurable(pool).act_as(db.tenant("T1"), "U1")
        async with pool.connection():
            start = time.monotonic()
            with nothing_written(db), pytest.raises(PoolExhausted, match=r"0\.20 sec") as caught:
                await me.open_session("support", "s-1")
            assert time.monotonic() - start < 5
        assert told(caught.value) == (PoolExhausted, False, "open_session")
        assert caught.value.names["session_id"] == "s-1"
        assert "max_size" in caught.value.hint
        await me.open_session("support", "s-1")


async def test_a_pool_whose_queue_is_full_is_exhausted(db: Rented) -> None:
    pool = AsyncConnectionPool(db.url("app"), min_size=1, max_size=1, timeout=5, max_waiting=-1, open=False)
    async with pool:
        await pool.wait()
        me = AsyncDurable(pool).act_as(db.tenant("T1"), "U1")
        async with pool.connection():
            with nothing_written(db), pytest.raises(PoolExhausted) as caught:
                await me.open_session("support", "s-1")
    assert told(caught.value) == (PoolExhausted, False, "open_session")


async def test_a_pool_that_keeps_no_connections_will_do(db: Rented) -> None:
    async with AsyncNullConnectionPool(db.url("app"), max_size=2, open=False) as pool:
        me = AsyncDurable(pool).act_as(db.tenant("T1"), "U1")
        session = await me.open_session("support", "s-1")
        await me.append_event(session, "agent", 1)
    assert len(stored(db, "events")) == 1


async def test_without_a_server_behind_it_a_pool_can_not_connect(db: Rented, proxy: Proxy) -> None:
    async with AsyncDurable.from_url(proxy.url(), max_size=1, timeout=0.5) as durable:
        me = durable.act_as(db.tenant("T1"), "U1")
        session = await me.open_session("support", "s-1")
        proxy.refuse()
        with nothing_written(db):
            # The further apart the pool's attempts are, the fewer of them fall into the time that a call waits.
            for _ in range(8):
                with pytest.raises(CannotConnect) as caught:
                    await me.append_event(session, "agent", 1)
                assert told(caught.value) == (CannotConnect, False, "append_event")
        proxy.accept()
        patient = AsyncDurable.from_url(proxy.url(), max_size=1)
        async with patient:
            await patient.act_as(db.tenant("T1"), "U1").append_event(session, "agent", 1)
    assert len(stored(db, "events")) == 1


async def test_a_pool_that_was_cut_off_once_can_be_exhausted_all_the_same(db: Rented, proxy: Proxy) -> None:
    proxy.refuse()
    async with AsyncConnectionPool(proxy.url(), min_size=1, max_size=1, timeout=0.5, open=False) as pool:
        me = AsyncDurable(pool).act_as(db.tenant("T1"), "U1")
        with pytest.raises(CannotConnect):
            await me.list_sessions()
        proxy.accept()
        pool.timeout = 30
        await me.list_sessions()
        pool.timeout = 0.2
        async with pool.connection():
            with pytest.raises(PoolExhausted):
                await me.list_sessions()


async def test_a_pool_finds_back_to_a_server_that_was_gone(db: Rented, proxy: Proxy) -> None:
    async with AsyncConnectionPool(proxy.url(), min_size=1, max_size=1, timeout=30, open=False) as pool:
        me = AsyncDurable(pool).act_as(db.tenant("T1"), "U1")
        session = await me.open_session("support", "s-1")
        proxy.refuse()
        proxy.accept()
        await me.append_event(session, "agent", 1)
    assert len(stored(db, "events")) == 1


async def test_a_client_that_is_not_open_yet_or_closed_sends_nothing(db: Rented) -> None:
    durable = AsyncDurable.from_url(db.url("app"))
    me = durable.act_as(db.tenant("T1"), "U1")
    with nothing_written(db):
        for _ in range(2):
            with pytest.raises(PoolNotOpen) as caught:
                await me.open_session("support")
            assert told(caught.value) == (PoolNotOpen, False, "open_session")
            assert "open()" in caught.value.hint
            await durable.close()
    with pytest.raises(PoolNotOpen, match="was closed"):
        await durable.open()


async def test_a_pool_that_is_not_open_sends_nothing(db: Rented) -> None:
    pool = AsyncConnectionPool(db.url("app"), open=False)
    with nothing_written(db), pytest.raises(PoolNotOpen) as caught:
        await AsyncDurable(pool).act_as(db.tenant("T1"), "U1").open_session("support")
    assert told(caught.value) == (PoolNotOpen, False, "open_session")


async def test_a_pool_keeps_its_settings_whatever_happens(db: Rented, proxy: Proxy) -> None:
    async with AsyncConnectionPool(proxy.url(), min_size=1, max_size=1, open=False) as pool:
        me = AsyncDurable(pool).act_as(db.tenant("T1"), "U1")
        session = await me.open_session("support", "s-1")
        await me.close_session(session)
        with pytest.raises(Exception, match="closed"):
            await me.append_event(session, "agent", 1)
        async with pool.connection() as connection:
            assert connection.autocommit is False
        proxy.lose_answers()
        with pytest.raises(ConnectionLost):
            await me.open_session("support")
        async with pool.connection() as connection:
            assert connection.autocommit is False


async def test_all_connections_go_back_to_the_pool(db: Rented, proxy: Proxy) -> None:
    async with AsyncConnectionPool(proxy.url(), min_size=2, max_size=2, timeout=5, open=False) as pool:
        me = AsyncDurable(pool).act_as(db.tenant("T1"), "U1")
        for _ in range(4):
            proxy.lose_requests()
            with pytest.raises(ConnectionLost):
                await me.open_session("support")
            with pytest.raises(Exception, match="session"):
                await me.read_events("01900000-0000-7000-8000-000000000000")
        await pool.wait(10)
        assert pool.get_stats()["pool_available"] == 2
