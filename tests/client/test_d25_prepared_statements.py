"""D25, langchain-ai/langgraph#6705: prepared statements failed behind a pooler in transaction mode."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from durable_pg import AsyncDurable, Durable
from tests.cases import pgbouncer
from tests.client.every_call import every_call
from tests.client.every_call_async import every_call_async
from tests.client.on_server import LEFT_BEHIND, NOTHING, OF_SESSION, PREPARED, own_settings
from tests.client.ways import POOLS
from tests.support.rented import Rented, stored

ROUNDS = 20
SETTINGS: dict[str, dict[str, Any]] = {
    **POOLS,
    "everything prepared": {"prepare_threshold": 0},
    "as reported": {"prepare_threshold": None, "autocommit": True, "row_factory": psycopg.rows.dict_row},
}
ATTRIBUTES = ("autocommit", "isolation_level", "read_only", "deferrable", "row_factory", "prepare_threshold")


@contextmanager
def one_server_connection(db: Rented) -> Iterator[str]:
    if pgbouncer.PROGRAM is None:
        pytest.skip("this machine has no pgbouncer")
    with pgbouncer.in_front_of(db, "app", connections=1) as url:
        yield url
        # On the one connection that everything went through.
        with psycopg.connect(url, prepare_threshold=None) as connection:
            assert_nothing_is_left(db, connection)


def assert_nothing_is_left(db: Rented, connection: psycopg.Connection[Any]) -> None:
    with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        assert cursor.execute(PREPARED, prepare=False).fetchall() == []
        assert cursor.execute(LEFT_BEHIND, prepare=False).fetchall() == [NOTHING]
        (settings,) = cursor.execute(OF_SESSION, prepare=False).fetchall()
    with psycopg.connect(db.url("app")) as fresh:
        assert own_settings(settings) == own_settings(*fresh.execute(OF_SESSION).fetchall())


def work(db: Rented, durable: Durable, user: str, together: Barrier) -> None:
    me = durable.act_as(db.tenant("T1"), user)
    together.wait(30)
    for number in range(ROUNDS):
        every_call(me, f"{user}-{number}")


def two_clients(db: Rented, durables: list[Durable]) -> None:
    together = Barrier(2)
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(work, db, durable, f"U{n}", together) for n, durable in enumerate(durables)]:
            done.result(120)


def assert_all_there(db: Rented) -> None:
    assert Counter(row["user_id"] for row in stored(db, "runs")) == {"U0": ROUNDS, "U1": ROUNDS}
    assert Counter(row["user_id"] for row in stored(db, "events")) == {"U0": 2 * ROUNDS, "U1": 2 * ROUNDS}


def test_two_clients_take_turns_on_one_server_connection(db: Rented) -> None:
    with (
        one_server_connection(db) as url,
        Durable.from_url(url, max_size=1) as first,
        Durable.from_url(url, max_size=1) as second,
    ):
        two_clients(db, [first, second])
    assert_all_there(db)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_so_do_two_pools_of_the_callers(db: Rented, settings: dict[str, Any]) -> None:
    with one_server_connection(db) as url:
        given: dict[str, Any] = {"min_size": 1, "max_size": 1, "open": False, "kwargs": settings}
        with ConnectionPool(url, **given) as first, ConnectionPool(url, **given) as second:
            before = [attributes(pool) for pool in (first, second)]
            two_clients(db, [Durable(first), Durable(second)])
            assert [attributes(pool) for pool in (first, second)] == before
    assert_all_there(db)


def attributes(pool: ConnectionPool[Any]) -> dict[str, object]:
    with pool.connection() as connection:
        return {name: getattr(connection, name) for name in ATTRIBUTES}


@pytest.mark.parametrize("settings", [{"prepare_threshold": 0, "autocommit": True}, {"prepare_threshold": None}])
def test_so_do_two_connections_of_the_callers(db: Rented, settings: dict[str, Any]) -> None:
    with (
        one_server_connection(db) as url,
        psycopg.connect(url, **settings) as first,
        psycopg.connect(url, **settings) as second,
    ):
        for number in range(ROUNDS):
            for user, connection in (("U0", first), ("U1", second)):
                every_call(Durable.on(connection).act_as(db.tenant("T1"), user), f"{user}-{number}")
                connection.commit()
    assert_all_there(db)


def by_url(url: str) -> AsyncDurable:
    return AsyncDurable.from_url(url, max_size=1)


@pytest.mark.parametrize("settings", [None, *SETTINGS.values()], ids=["url", *SETTINGS])
async def test_so_do_two_asynchronous_clients(db: Rented, settings: dict[str, Any] | None) -> None:
    async def work(durable: AsyncDurable, user: str) -> None:
        me = durable.act_as(db.tenant("T1"), user)
        for number in range(ROUNDS):
            await every_call_async(me, f"{user}-{number}")

    with one_server_connection(db) as url:
        if settings is None:
            async with by_url(url) as first, by_url(url) as second:
                await asyncio.gather(work(first, "U0"), work(second, "U1"))
        else:
            given: dict[str, Any] = {"min_size": 1, "max_size": 1, "open": False, "kwargs": settings}
            async with AsyncConnectionPool(url, **given) as one, AsyncConnectionPool(url, **given) as other:
                await asyncio.gather(work(AsyncDurable(one), "U0"), work(AsyncDurable(other), "U1"))
    assert_all_there(db)


class Noting(ConnectionPool[Any]):
    """Notes which connections it gives out."""

    def __init__(self, *args: Any, **more: Any) -> None:
        self.given: list[int] = []
        super().__init__(*args, **more)

    def getconn(self, timeout: float | None = None) -> psycopg.Connection[Any]:
        connection: psycopg.Connection[Any] = super().getconn(timeout)
        self.given.append(connection.info.backend_pid)
        return connection


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_pool_of_two_may_give_each_call_the_other_connection(db: Rented, settings: dict[str, Any]) -> None:
    with Noting(db.url("app"), min_size=2, max_size=2, open=False, kwargs=settings) as pool:
        pool.wait()
        with pool.connection() as one, pool.connection() as other:
            before = [{name: getattr(each, name) for name in ATTRIBUTES} for each in (one, other)]
        pool.given.clear()
        me = Durable(pool).act_as(db.tenant("T1"), "U1")
        for number in range(ROUNDS):
            every_call(me, f"s-{number}")
        assert len(set(pool.given)) == 2
        assert all(this != previous for previous, this in zip(pool.given, pool.given[1:], strict=False))
        assert [{name: getattr(each, name) for name in ATTRIBUTES} for each in (one, other)] == before
        for connection in (one, other):
            assert_nothing_is_left(db, connection)
            connection.rollback()
    assert len(stored(db, "runs")) == 2 * ROUNDS
