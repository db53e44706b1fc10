"""Leases that run out, and what the database says of runs and effects, past row-level security."""

from typing import Any
from uuid import UUID

from tests.support.harness import value
from tests.support.rented import Rented, stored


def let_the_lease_run_out(db: Rented, run: UUID) -> None:
    """Make the lease of a run, and those of what it has begun, be over."""
    with db.superuser() as root:
        for table, column in (("runs", "run_uid"), ("effects", "held_by")):
            root.execute(
                f"update durable.{table} set lease_expires_at = clock_timestamp() where {column} = %s".encode(), (run,)
            )


def lease_of(db: Rented, run: UUID) -> Any:
    """Return until when a run is held."""
    with db.superuser() as root:
        return value(root, "select lease_expires_at from durable.runs where run_uid = %s", run)


def statuses(db: Rented, table: str = "effects") -> list[str]:
    """Return the stored status of each effect, or run, of this test."""
    return sorted(row["status"] for row in stored(db, table))


def the_run(db: Rented) -> dict[str, Any]:
    """Return the only run of this test."""
    (row,) = stored(db, "runs")
    return row


def wait_until_the_provider_forgets(db: Rented) -> None:
    """Wait until provider_dedupes_for of every effect is over, by the database's clock."""
    age = "clock_timestamp() - first_begun_at"
    held = f"select coalesce(bool_or({age} < provider_dedupes_for), false) from durable.effects"
    with db.superuser() as root:
        while value(root, held):
            root.execute("select 1")
