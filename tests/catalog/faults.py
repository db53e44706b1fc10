"""Whole-schema rules as queries for what breaks them."""

from typing import Any

from tests.support.harness import Database


def faults(db: Database, query: str, *parameters: Any) -> list[str]:
    """The one column of each row that a query finds; a rule holds where there is none."""
    with db.superuser() as root:
        found = root.execute(query.encode(), parameters or None).fetchall()
    return sorted(str(next(iter(row.values()))) for row in found)
