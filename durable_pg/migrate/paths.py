"""Where sql/ and migrations/ are: inside the installed package, or at the root of a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def _find(name: str, marker: str) -> Path:
    for parent in (_PACKAGE, _PACKAGE.parent):
        if (parent / name / marker).is_file():
            return parent / name
    raise FileNotFoundError(f"durable_pg is not installed completely: {name}/{marker} is missing; install it again")


def sql_dir() -> Path:
    """Where the schema as it is now is."""
    return _find("sql", "roles.sql")


def migrations_dir() -> Path:
    """Where the frozen revisions are."""
    return _find("migrations", "env.py")
