# Generated from brought_async.py by tools/async_to_sync.py: change that.
"""Connections that a caller brings, and what a caller does with them besides."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import sqlalchemy
from psycopg import ClientCursor, Connection, Cursor, RawCursor, RawServerCursor
from psycopg.rows import dict_row, namedtuple_row, tuple_row
from sqlalchemy.engine import Connection as SqlalchemyConnection
from sqlalchemy.engine import create_engine

from tests.client.ways import drivers
from tests.support.harness import Database

PSYCOPG: dict[str, dict[str, Any]] = {
    "psycopg": {},
    "psycopg in autocommit": {"autocommit": True},
    "psycopg, rows as dicts": {"row_factory": dict_row, "cursor_factory": ClientCursor},
    "psycopg, rows as named tuples": {"row_factory": namedtuple_row, "cursor_factory": RawCursor},
    "psycopg, server cursors": {"cursor_factory": RawServerCursor},
    "psycopg, everything prepared": {"prepare_threshold": 0},
    "psycopg, everything prepared when it comes again": {"prepare_threshold": 1},
    "psycopg, nothing prepared": {"prepare_threshold": None},
}
SQLALCHEMY = tuple(f"sqlalchemy over {driver}" for driver in drivers)
BROUGHT = (*PSYCOPG, *SQLALCHEMY)


class Brought(Protocol):
    """A connection in its owner's hands."""

    connection: Any

    def execute(self, query: str) -> list[tuple[Any, ...]]: ...

    def transaction(self) -> AbstractContextManager[Any]: ...

    def savepoint(self) -> AbstractContextManager[Any]: ...


class Psycopg:
    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection

    def execute(self, query: str) -> list[tuple[Any, ...]]:
        with Cursor(self.connection, row_factory=tuple_row) as cursor:
            cursor.execute(query.encode(), prepare=False)
            return cursor.fetchall() if cursor.description else []

    def transaction(self) -> AbstractContextManager[Any]:
        return self.connection.transaction()

    def savepoint(self) -> AbstractContextManager[Any]:
        return self.connection.transaction()


class Sqlalchemy:
    def __init__(self, connection: SqlalchemyConnection) -> None:
        self.connection = connection

    def execute(self, query: str) -> list[tuple[Any, ...]]:
        result = self.connection.exec_driver_sql(query)
        return [tuple(row) for row in result.all()] if result.returns_rows else []

    def transaction(self) -> AbstractContextManager[Any]:
        return self.connection.begin()

    def savepoint(self) -> AbstractContextManager[Any]:
        return self.connection.begin_nested()


@contextmanager
def bring(db: Database, way: str, **options: Any) -> Iterator[Brought]:
    """Connect as the app in one of the ways; what is not committed is rolled back."""
    if way in PSYCOPG:
        connection = Connection.connect(db.url("app"), **{**PSYCOPG[way], **options})
        try:
            yield Psycopg(connection)
        finally:
            connection.close()
        return
    driver = way.removeprefix("sqlalchemy over ")
    engine = create_engine(
        sqlalchemy.make_url(db.url("app")).set(drivername=f"postgresql+{driver}"), poolclass=sqlalchemy.NullPool
    )
    with engine.connect() as of_engine:
        yield Sqlalchemy(of_engine.execution_options(**options))
    engine.dispose()
