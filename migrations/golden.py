"""A migrated database to read the expected catalog from: any server does, the embedded one is at hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from durable_pg._embedded.database import temporary_database


@contextmanager
def migrated_database() -> Iterator[str]:
    """Start an embedded server, migrate a database of it as a login that is no superuser, give its URL."""
    with temporary_database() as database:
        yield database.url("mig")
