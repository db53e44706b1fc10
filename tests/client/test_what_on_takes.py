"""What a client is made of; anything else is refused with what to give instead."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from durable_pg import AsyncDurable, Durable
from tests.support.harness import Connection
from tests.support.rented import Rented

SYNC = r"psycopg\.Connection or a sqlalchemy\.engine\.Connection, not"
ASYNC = r"psycopg\.AsyncConnection or a sqlalchemy\.ext\.asyncio\.AsyncConnection, not"


@pytest.fixture
def connection(db: Rented) -> Iterator[Connection]:
    with db.connect("app") as connection:
        yield connection


@pytest.fixture
def engine(db: Rented) -> Iterator[sqlalchemy.Engine]:
    url = sqlalchemy.make_url(db.url("app")).set(drivername="postgresql+psycopg")
    engine = sqlalchemy.create_engine(url, poolclass=NullPool)
    yield engine
    engine.dispose()


def test_a_synchronous_connection_is_not_for_the_asynchronous_client(
    connection: Connection, engine: sqlalchemy.Engine
) -> None:
    with engine.connect() as of_engine:
        for given in (connection, of_engine):
            with pytest.raises(TypeError, match=ASYNC):
                AsyncDurable.on(given)


async def test_an_asynchronous_connection_is_not_for_the_synchronous_client(engine: sqlalchemy.Engine) -> None:
    async with create_async_engine(engine.url, poolclass=NullPool).connect() as given:
        with pytest.raises(TypeError, match=SYNC):
            Durable.on(given)


async def test_within_run_sync_the_connection_is_a_synchronous_one(db: Rented, engine: sqlalchemy.Engine) -> None:
    def work(connection: sqlalchemy.Connection) -> str:
        return Durable.on(connection).act_as(db.tenant("T1"), "U1").open_session("support", "s-1").outcome

    async with create_async_engine(engine.url, poolclass=NullPool).connect() as connection:
        assert await connection.run_sync(work) == "created"


SOURCES: dict[str, Callable[[sqlalchemy.Engine, Connection], Any]] = {
    "an engine": lambda engine, _: engine,
    "a url": lambda engine, _: engine.url,
    "a string": lambda engine, _: engine.url.render_as_string(),
    "an orm session": lambda engine, _: Session(engine),
    "an asynchronous orm session": lambda engine, _: AsyncSession(create_async_engine(engine.url)),
    "an asynchronous engine": lambda engine, _: create_async_engine(engine.url),
    "a cursor": lambda _, connection: connection.cursor(),
    "a pool": lambda engine, _: engine.pool,
    "nothing": lambda *_: None,
}


@pytest.mark.parametrize("name", SOURCES)
def test_anything_else_is_no_connection(engine: sqlalchemy.Engine, connection: Connection, name: str) -> None:
    given = SOURCES[name](engine, connection)
    with pytest.raises(TypeError, match=SYNC) as refusal:
        Durable.on(given)
    assert "(of an ORM session, its connection())" in str(refusal.value)
    with pytest.raises(TypeError, match=ASYNC) as refusal:
        AsyncDurable.on(given)
    assert "(of an ORM session, await its connection())" in str(refusal.value)


def test_a_connection_to_another_database_is_refused_by_its_name() -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as connection, pytest.raises(TypeError, match="not to sqlite"):
        Durable.on(connection)
    engine.dispose()


def test_a_client_is_made_of_a_pool_of_its_own_kind(db: Rented, connection: Connection) -> None:
    given: Any
    for given in (db.url("app"), connection, None, AsyncConnectionPool(db.url("app"), open=False)):
        with pytest.raises(TypeError, match=r"a psycopg_pool\.ConnectionPool is needed.*from_url\(\) and on\(\)"):
            Durable(given)
    for given in (db.url("app"), connection, None, ConnectionPool(db.url("app"), open=False)):
        with pytest.raises(TypeError, match=r"a psycopg_pool\.AsyncConnectionPool is needed.*from_url\(\) and on\(\)"):
            AsyncDurable(given)


def test_the_async_client_does_without_greenlet() -> None:
    """Which SQLAlchemy's asyncio needs, and who has no connection of that kind need not have."""
    script = (
        "import asyncio, sys; sys.modules['greenlet'] = None\n"
        "from durable_pg import AsyncDurable\n"
        "try:\n"
        "    AsyncDurable.on(object())\n"
        "except TypeError:\n"
        "    print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "refused\n"
