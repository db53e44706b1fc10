"""Connections that a caller brings, and what a caller does with them besides."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import sqlalchemy
from psycopg import AsyncClientCursor, AsyncConnection, AsyncCursor, AsyncRawCursor, AsyncRawServerCursor
from psycopg.rows import dict_row, namedtuple_row, tuple_row
from sqlalchemy.ext.asyncio import AsyncConnection as AsyncSqlalchemyConnection
from sqlalchemy.ext.asyncio import create_async_engine

from tests.client.ways import drivers_async
from tests.support.harness import Database

PSYCOPG: dict[str, dict[str, Any]] = {
    "psycopg": {},
    "psycopg in autocommit": {"autocommit": True},
    "psycopg, rows as dicts": {"row_factory": dict_row, "cursor_factory": AsyncClientCursor},
    "psycopg, rows as named tuples": {"row_factory": namedtuple_row, "cursor_factory": AsyncRawCursor},
    "psycopg, server cursors": {"cursor_factory": AsyncRawServerCursor},
    "psycopg, everything prepared": {"prepare_threshold": 0},
    "psycopg, everything prepared when it comes again": {"prepare_threshold": 1},
    "psycopg, nothing prepared": {"prepare_threshold": None},
}
SQLALCHEMY = tuple(f"sqlalchemy over {driver}" for driver in drivers_async)
BROUGHT = (*PSYCOPG, *SQLALCHEMY)


class AsyncBrought(Protocol):
    """A connection in its owner's hands."""

    connection: Any

    async def execute(self, query: str) -> list[tuple[Any, ...]]: ...

    def transaction(self) -> AbstractAsyncContextManager[Any]: ...

    def savepoint(self) -> AbstractAsyncContextManager[Any]: ...


class AsyncPsycopg:
    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self.connection = connection

    async def execute(self, query: str) -> list[tuple[Any, ...]]:
        async with AsyncCursor(self.connection, row_factory=tuple_row) as cursor:
            await cursor.execute(query.encode(), prepare=False)
            return await cursor.fetchall() if cursor.description else []

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return self.connection.transaction()

    def savepoint(self) -> AbstractAsyncContextManager[Any]:
        return self.connection.transaction()


class AsyncSqlalchemy:
    def __init__(self, connection: AsyncSqlalchemyConnection) -> None:
        self.connection = connection

    async def execute(self, query: str) -> list[tuple[Any, ...]]:
        result = await self.connection.exec_driver_sql(query)
        return [tuple(row) for row in result.all()] if result.returns_rows else []

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return self.connection.begin()

    def savepoint(self) -> AbstractAsyncContextManager[Any]:
        return self.connection.begin_nested()


@asynccontextmanager
async def bring_async(db: Database, way: str, **options: Any) -> AsyncIterator[AsyncBrought]:
    """Connect as the app in one of the ways; what is not committed is rolled back."""
    if way in PSYCOPG:
        connection = await AsyncConnection.connect(db.url("app"), **{**PSYCOPG[way], **options})
        try:
            yield AsyncPsycopg(connection)
        finally:
            await connection.close()
        return
    driver = way.removeprefix("sqlalchemy over ")
    engine = create_async_engine(
        sqlalchemy.make_url(db.url("app")).set(drivername=f"postgresql+{driver}"), poolclass=sqlalchemy.NullPool
    )
    async with engine.connect() as of_engine:
        yield AsyncSqlalchemy(await of_engine.execution_options(**options))
    await engine.dispose()
