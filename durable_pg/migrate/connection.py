"""Opens a connection for a URL, and says what is wrong when none can be had. No message ever holds a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import create_engine
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from durable_pg._wire.address import Unreadable, hint, hint_for_client, understand, without_password
from durable_pg._wire.diagnostics import diagnostic, primary_message, sqlstate
from durable_pg.migrate.database import TRUSTED_PATH
from durable_pg.migrate.errors import (
    BadRequest,
    CannotConnect,
    MigrationError,
    WaitTimedOut,
)


@contextmanager
def connect(target: str | Connection | None, *, pooled: bool = False) -> Iterator[Connection]:
    """A connection for a URL (or the environment's); a connection that was brought stays the caller's.

    A `pooled` one may be behind a transaction-mode pooler: nothing is set that outlives a transaction.
    """
    if isinstance(target, Connection):
        yield target
        return
    try:
        dsn, given = understand(target)
    except Unreadable as error:
        raise BadRequest(str(error), hint=error.hint) from None
    # The driver is named, and libpq reads the URL: SQLAlchemy's default driver and URL rules differ by version. In
    # a database in SQL_ASCII, or with an odd PGCLIENTENCODING, psycopg would give bytes for text.
    told = hint_for_client if pooled else hint
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: _open(dsn, pooled),
        poolclass=NullPool,
    )
    try:
        try:
            connection = engine.connect()
        except DBAPIError as error:
            detail = without_password(primary_message(error), given)
            raise CannotConnect("can't connect to Postgres", detail=detail, hint=told(detail, target, given)) from None
        with connection:
            yield connection
    except DBAPIError as error:
        kind = WaitTimedOut if sqlstate(error) == "55P03" else MigrationError
        raise kind(
            f"{primary_message(error)} ({sqlstate(error) or 'connection lost'})",
            detail=diagnostic(error, "message_detail"),
            hint=diagnostic(error, "message_hint"),
        ) from error.orig
    finally:
        engine.dispose()


def _open(dsn: str, pooled: bool) -> psycopg.Connection[Any]:
    connection = psycopg.connect(dsn, application_name="durable-pg", client_encoding="utf8")
    if pooled:
        connection.prepare_threshold = None
        return connection
    connection.execute("select pg_catalog.set_config('search_path', %s, false)", (TRUSTED_PATH,))
    connection.commit()
    return connection
