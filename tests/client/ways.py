"""The ways to a database that a user may take, by name, and how a pool is made for each."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from psycopg.rows import dict_row

from tests.cases import pgbouncer
from tests.support.harness import Database

POOLS: dict[str, dict[str, Any]] = {
    "pool": {},
    "dict_row pool": {"row_factory": dict_row},
    "autocommit pool": {"autocommit": True, "prepare_threshold": None},
}
WAYS = ("url", *POOLS, "pgbouncer")
# For tests of what could differ by the way; the others take one.
every_way = pytest.mark.parametrize("durable", WAYS, indirect=True)
every_way_async = pytest.mark.parametrize("durable_async", WAYS, indirect=True)


@contextmanager
def address(db: Database, way: str) -> Iterator[str]:
    """Return the app's URL, which for one way leads through a pgbouncer in transaction mode."""
    if way != "pgbouncer":
        yield db.url("app")
        return
    if pgbouncer.PROGRAM is None:
        pytest.skip("this machine has no pgbouncer")
    with pgbouncer.in_front_of(db, "app", connections=2) as url:
        yield url


# Of SQLAlchemy. The twin of a test finds the second under the name of the first.
drivers = ("psycopg",)
drivers_async = ("psycopg", "asyncpg")
