"""The catalog of schema durable: what this package makes, and what a live database has otherwise."""

from durable_pg.migrate.catalog.comparison import (
    GUARD_FUNCTIONS,
    Difference,
    Fact,
    as_json,
    check,
    compare,
    expected,
    read,
)

__all__ = ["GUARD_FUNCTIONS", "Difference", "Fact", "as_json", "check", "compare", "expected", "read"]
