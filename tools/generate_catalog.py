"""Write expected_catalog.json: the catalog of a database that was just migrated. `--check` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

from durable_pg._embedded.database import temporary_database
from durable_pg._embedded.logins import MIGRATOR
from durable_pg.migrate import catalog

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "durable_pg" / "migrate" / "catalog" / "expected_catalog.json"


def main() -> int:
    """Write or compare the file; returns the exit code."""
    with temporary_database() as database:
        text = catalog.as_json(catalog.read(database.url(MIGRATOR)))
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text, encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != text:
        sys.stderr.write(f"out of date: {FILE.relative_to(ROOT)}; make generate\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
