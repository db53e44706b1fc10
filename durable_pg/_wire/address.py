"""What people write as a database's address, and what to tell them when it leads nowhere. Never with a password."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from durable_pg.errors import ArgumentInvalid, CannotConnect

_SCHEME = re.compile(r"^postgres(?:ql)?(?:\+[a-z0-9_]+)?://", re.IGNORECASE)
_SSL = re.compile(r"(?<=[?&])ssl=")
# user:password@ as it was meant: up to the last @ before the query. A port and a path before it are no password.
_PASSWORD = re.compile(r"^[^:/@?]*:(?!\d*/)([^?]*)@")
_UNESCAPED = re.compile(r"[@/\s]|%(?![0-9A-Fa-f]{2})")
VARIABLES = ("DURABLE_PG_URL", "DATABASE_URL")
ESCAPED = "Special characters in a password are percent-encoded: @ is %40, / is %2F, # is %23, ? is %3F, % is %25."
_SILENT = "The host does not answer: check host, port and firewall."
_FULL = "The server has no connection to spare: try again, or raise its limit."
_IN_BETWEEN = "The server is starting or stopping: try again in a moment."
# What libpq and the server say, and what to do about it. A server that speaks another language gets no such hint.
_CAUSES = (
    ("statement timeout", "statement_timeout is too short even to connect: raise it."),
    ("database ", "A superuser or a login with CREATEDB must create it for the migration login: {create}"),
    ("role ", "The name is wrong, or a DBA must create this login first."),
    ("password authentication failed", f"The login or its password is wrong. {ESCAPED}"),
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
_NOWHERE = "Give a URL (--url), or set DURABLE_PG_URL, DATABASE_URL or libpq's PGHOST, PGUSER, PGDATABASE."


def conninfo(url: str | None = None, environ: Mapping[str, str] | None = None) -> str:
    """A libpq connection string: `url`, else DURABLE_PG_URL, else DATABASE_URL, else "" (libpq's PG* variables).

    Understood are postgres:// and postgresql://, the SQLAlchemy spellings (postgresql+psycopg://, +asyncpg:// ...)
    and libpq's own `host=... dbname=...`. An empty `url` is a mistake, most often a variable that is not set: it is
    refused and never taken for the environment's database. No message repeats what was given: it may hold a password.
    """
    environ = os.environ if environ is None else environ
    if url is not None and not url.strip():
        raise ValueError("the URL is empty; is a variable not set?")
    found = url or next(filter(None, (environ.get(name) for name in VARIABLES)), "")
    if "://" not in found:
        return found
    if not _SCHEME.match(found):
        scheme = found.partition("://")[0]
        if not scheme.replace("+", "").isalnum():
            raise ValueError("not a Postgres URL, expected postgresql://")
        raise ValueError(f"not a Postgres URL: it starts with {scheme}://, expected postgresql://")
    password = _PASSWORD.match(_SCHEME.sub("", found, count=1))
    if password and _UNESCAPED.search(password[1]):
        raise ValueError(
            "the password in the URL must be percent-encoded: @ is %40, / is %2F, # is %23, ? is %3F, % is %25"
        )
    # asyncpg's ?ssl=require is libpq's ?sslmode=require.
    return _SSL.sub("sslmode=", _SCHEME.sub("postgresql://", found, count=1))


def source(url: str | None = None, environ: Mapping[str, str] | None = None) -> str:
    """The variable in which conninfo() found what it returns; "" when it was given, or is left to libpq's own."""
    environ = os.environ if environ is None else environ
    return "" if url is not None else next((name for name in VARIABLES if environ.get(name)), "")


class Unreadable(ValueError):
    """The address can't be read. `hint` says what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def understand(url: str | None) -> tuple[str, dict[str, Any]]:
    """The connection string for a URL (or the environment's), and its parts. Raises Unreadable."""
    try:
        dsn = conninfo(url)
    except ValueError as error:
        where = source(url)
        raise Unreadable(str(error), f"The database is the one in {where}." if where else "") from None
    given = _parts(dsn)
    if given is None:
        raise Unreadable("the connection string can't be read", f"Such as postgresql://login@db/shop. {ESCAPED}")
    if not str(given.get("port", "0")).replace(",", "").isdigit():
        raise Unreadable("the port in the connection string is not a number", ESCAPED)
    return dsn, given


def _parts(dsn: str) -> dict[str, Any] | None:
    """None for what can't be read. What libpq says about it quotes a piece, perhaps of the password, and stays here."""
    try:
        return dict(conninfo_to_dict(dsn))
    except (psycopg.Error, UnicodeError):
        return None


def without_password(message: str, given: Mapping[str, Any]) -> str:
    password = str(given.get("password") or "")
    for form in {password, quote(password, safe="")} - {""}:
        # A short one would be found in other words.
        if len(form) > 3:
            message = message.replace(form, "***")
    return message


def hint(detail: str, url: str | None, given: Mapping[str, Any]) -> str:
    """What to do about what libpq or the server said, for whoever migrates."""
    where = source(url)
    told = "" if url is not None else f"The database is the one in {where}." if where else _NOWHERE
    for words, advice in _CAUSES:
        if words in detail and (not words.endswith(" ") or "does not exist" in detail):
            return " ".join(filter(None, (advice.replace("{create}", _create_database(given)), told)))
    return told


def hint_for_client(detail: str, url: str | None, given: Mapping[str, Any]) -> str:
    """The same for an application, which makes no database."""
    if detail.endswith("does not exist") and "database " in detail:
        return "The name is wrong, or nobody has created this database and run durable-pg upgrade on it yet."
    return hint(detail, url, given)


def pool_settings(url: str | None) -> dict[str, Any]:
    """The arguments of a psycopg pool for a URL. Raises ArgumentInvalid (22W03)."""
    if url is not None and not isinstance(url, str):
        raise ArgumentInvalid(f"url is of type {type(url).__name__}", hint="Pass a str, or None.", column="url")
    try:
        dsn, given = understand(url)
    except Unreadable as error:
        raise ArgumentInvalid(str(error), hint=error.hint, column="url") from None
    settings: dict[str, Any] = {
        # A transaction-mode pooler gives the next statement to another server connection: nothing is prepared there,
        # and a statement that is a transaction of its own needs no BEGIN.
        "autocommit": True,
        "prepare_threshold": None,
        "client_encoding": "utf8",
        "fallback_application_name": "durable_pg",
    }
    if "connect_timeout" not in given and "PGCONNECT_TIMEOUT" not in os.environ:
        settings["connect_timeout"] = 10
    # A pool tries ever less often and, by itself, for five minutes: a server that is back would be found a minute late.
    # When it has given up, the next call makes it try again at once.
    return {"conninfo": dsn, "kwargs": settings, "name": "durable_pg", "reconnect_timeout": 10.0}


def unreachable(error: psycopg.Error, url: str | None) -> CannotConnect:
    """What to raise when the first connection to a URL fails."""
    _, given = understand(url)
    detail = without_password(str(error).strip(), given)
    return CannotConnect("can't connect to Postgres", detail=detail, hint=hint_for_client(detail, url, given))


def _create_database(given: Mapping[str, Any]) -> str:
    login = str(given.get("user") or "")
    owner = f" owner {_quote(login)}" if login else ""
    name = str(given.get("dbname") or login)
    return f"create database {_quote(name)}{owner} template template0 encoding 'UTF8';"


def _quote(name: str) -> str:
    return name if re.fullmatch("[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'
