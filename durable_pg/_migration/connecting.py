"""Opens a connection for a URL, and says what is wrong when none can be had. No message ever holds a password."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from durable_pg._migration.database import TRUSTED_PATH
from durable_pg._migration.errors import (
    BadRequest,
    CannotConnect,
    MigrationError,
    WaitTimedOut,
    diagnostic,
    primary_message,
    sqlstate,
)
from durable_pg._url import conninfo, source

_ESCAPED = "Special characters in a password are percent-encoded: @ is %40, / is %2F, # is %23, ? is %3F, % is %25."
_SILENT = "The host does not answer: check host, port and firewall."
_FULL = "The server has no connection to spare: try again, or raise its limit."
_IN_BETWEEN = "The server is starting or stopping: try again in a moment."
# What libpq and the server say, and what to do about it. A server that speaks another language gets no such hint.
_CAUSES = (
    ("database ", "A superuser or a login with CREATEDB must create it for the migration login: {create}"),
    ("role ", "The name is wrong, or a DBA must create this login first."),
    ("password authentication failed", f"The login or its password is wrong. {_ESCAPED}"),
    ("no password supplied", "Give the password in the URL, in PGPASSWORD or in ~/.pgpass."),
    ("pg_hba.conf", "The server does not admit this login from here: a DBA must add a line to pg_hba.conf."),
    ("not permitted to log in", "Use a login; durable_pg's own roles are none."),
    ("SSL", "Client and server don't agree on TLS: see sslmode."),
    ("resolve host", "There is no host of that name."),
    ("translate host name", "There is no host of that name."),
    ("Connection refused", "No server answers there: is it running, and are host and port right?"),
    ("No such file", "No server answers there: is it running, and is the socket's directory right?"),
    ("timeout", _SILENT),
    ("timed out", _SILENT),
    ("unreachable", _SILENT),
    ("starting up", _IN_BETWEEN),
    ("shutting down", _IN_BETWEEN),
    ("too many", _FULL),
    ("remaining connection slots", _FULL),
)
_NOWHERE = "Give --url, or set DURABLE_PG_URL, DATABASE_URL or libpq's PGHOST, PGUSER, PGDATABASE."


@contextmanager
def connect(target: str | Connection | None) -> Iterator[Connection]:
    """A connection for a URL (or the environment's); a connection that was brought stays the caller's."""
    if isinstance(target, Connection):
        yield target
        return
    dsn, given = _understand(target)
    # The driver is named, and libpq reads the URL: SQLAlchemy's default driver and URL rules differ by version. In
    # a database in SQL_ASCII, or with an odd PGCLIENTENCODING, psycopg would give bytes for text.
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: _open(dsn),
        poolclass=NullPool,
    )
    try:
        try:
            connection = engine.connect()
        except DBAPIError as error:
            detail = _without_password(primary_message(error), given)
            raise CannotConnect("can't connect to Postgres", detail=detail, hint=_hint(detail, target, given)) from None
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


def _open(dsn: str) -> psycopg.Connection[Any]:
    connection = psycopg.connect(dsn, application_name="durable-pg", client_encoding="utf8")
    connection.execute("select pg_catalog.set_config('search_path', %s, false)", (TRUSTED_PATH,))
    connection.commit()
    return connection


def _understand(target: str | None) -> tuple[str, dict[str, Any]]:
    try:
        dsn = conninfo(target)
    except ValueError as error:
        where = source(target)
        raise BadRequest(str(error), hint=f"The database is the one in {where}." if where else "") from None
    # What libpq says about a mistake quotes a piece, which may be one of the password.
    try:
        given: dict[str, Any] = conninfo_to_dict(dsn)
    except psycopg.Error:
        hint = f"Such as postgresql://migrator@db/shop. {_ESCAPED}"
        raise BadRequest("the connection string can't be read", hint=hint) from None
    if not str(given.get("port", "0")).replace(",", "").isdigit():
        raise BadRequest("the port in the connection string is not a number", hint=_ESCAPED)
    return dsn, given


def _without_password(message: str, given: Mapping[str, Any]) -> str:
    password = str(given.get("password") or "")
    for form in {password, quote(password, safe="")} - {""}:
        # A short one would be found in other words.
        if len(form) > 3:
            message = message.replace(form, "***")
    return message


def _hint(detail: str, target: str | None, given: Mapping[str, Any]) -> str:
    where = source(target)
    told = "" if target is not None else f"The database is the one in {where}." if where else _NOWHERE
    for words, hint in _CAUSES:
        if words in detail and (not words.endswith(" ") or "does not exist" in detail):
            return " ".join(filter(None, (hint.replace("{create}", _create_database(given)), told)))
    return told


def _create_database(given: Mapping[str, Any]) -> str:
    login = str(given.get("user") or "")
    owner = f" owner {_quote(login)}" if login else ""
    name = str(given.get("dbname") or login)
    return f"create database {_quote(name)}{owner} template template0 encoding 'UTF8';"


def _quote(name: str) -> str:
    return name if re.fullmatch("[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'
