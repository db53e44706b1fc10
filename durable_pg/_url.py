"""One place that understands how people write a Postgres URL."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_SCHEME = re.compile(r"^postgres(?:ql)?(?:\+[a-z0-9_]+)?://", re.IGNORECASE)
_SSL = re.compile(r"(?<=[?&])ssl=")


def conninfo(url: str | None = None, environ: Mapping[str, str] | None = None) -> str:
    """A libpq connection string: `url`, else DURABLE_PG_URL, else DATABASE_URL, else "" (libpq's PG* variables).

    Understood are postgres:// and postgresql://, the SQLAlchemy spellings (postgresql+psycopg://, +asyncpg:// ...)
    and libpq's own `host=... dbname=...`.
    """
    environ = os.environ if environ is None else environ
    found = url or environ.get("DURABLE_PG_URL") or environ.get("DATABASE_URL") or ""
    if "://" not in found:
        return found
    if not _SCHEME.match(found):
        scheme = found.partition("://")[0]
        raise ValueError(f"not a Postgres URL: it starts with {scheme}://, expected postgresql://")
    # asyncpg's ?ssl=require is libpq's ?sslmode=require.
    return _SSL.sub("sslmode=", _SCHEME.sub("postgresql://", found, count=1))
