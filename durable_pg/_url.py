"""One place that understands how people write a Postgres URL."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_SCHEME = re.compile(r"^postgres(?:ql)?(?:\+[a-z0-9_]+)?://", re.IGNORECASE)
_SSL = re.compile(r"(?<=[?&])ssl=")
# user:password@ as it was meant: up to the last @ before the query. A port and a path before it are no password.
_PASSWORD = re.compile(r"^[^:/@?]*:(?!\d*/)([^?]*)@")
_UNESCAPED = re.compile(r"[@/\s]|%(?![0-9A-Fa-f]{2})")
VARIABLES = ("DURABLE_PG_URL", "DATABASE_URL")


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
