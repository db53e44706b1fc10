"""Rule legal-transitions: a run is born and moves only along the rows of `transitions`; a settled one never changes."""

import pytest

from tests.guarantees._roles import BACK, FRONT, acting
from tests.guarantees._world import World, insert, owner_without_force, run_row, superuser_replica, unchanged
from tests.harness import Database, refused, rows

MOVES = {
    ("", "running"),
    ("running", "succeeded"),
    ("running", "failed"),
    ("running", "cancelled"),
}
GUARD = "_400_legal_transitions"
STATUSES = ("running", "awaiting", "interrupted", "succeeded", "failed", "cancelled", "", "done")
# Each leaves every written value of the settled run as it is, so that no other guard has an opinion.
REOPENINGS = [
    "status = 'succeeded'",
    "status = 'cancelled'",
    "status = 'done'",
    "attempt = attempt + 1",
]
CHANGES = [
    "insert into durable.transitions values ('run', 'failed', 'running', 'again')",
    "insert into durable.transitions values ('run', 'running', 'failed', '') on conflict do nothing",
    "update durable.transitions set to_status = 'running'",
    "delete from durable.transitions",
]


def test_the_table_lists_these_moves(db: Database) -> None:
    found = rows(db, "transitions")
    assert {(row["from_status"], row["to_status"]) for row in found if row["entity"] == "run"} == MOVES
    assert {row["entity"] for row in found} == {"run"}


@pytest.mark.parametrize("status", STATUSES)
def test_a_running_run_goes_only_where_a_row_leads(db: Database, status: str) -> None:
    mine = World.of(db).mine
    settled_at = "null" if status == "running" else "now()"
    move = f"update durable.runs set status = '{status}', settled_at = {settled_at} where run_uid = '{mine.running}'"
    if ("running", status) in MOVES or status == "running":
        with db.as_engine() as engine:
            assert engine.execute(move.encode()).rowcount == 1
    else:
        with unchanged(db), refused("23W04", constraint=GUARD), db.as_engine() as engine:
            engine.execute(move.encode())


@pytest.mark.parametrize("status", STATUSES)
def test_a_run_is_born_running(db: Database, status: str) -> None:
    mine = World.of(db).mine
    row = run_row(mine, status=status, settled_at=None if status == "running" else "2026-01-01")
    with db.superuser() as root:
        if status == "running":
            assert insert(root, "runs", row) == 1
            return
        with refused("23W04", constraint=GUARD), root.transaction():
            insert(root, "runs", row)


@pytest.mark.parametrize("change", REOPENINGS)
def test_a_settled_run_never_changes(db: Database, change: str) -> None:
    mine = World.of(db).mine
    statement = f"update durable.runs set {change} where run_uid = '{mine.settled}'".encode()
    with unchanged(db):
        if "attempt" not in change:
            with refused("23W04", constraint=GUARD), db.as_engine() as engine:
                engine.execute(statement)
        with refused("42W03"), db.as_owner("T1", "U1") as owner:
            owner.execute(statement)
        with refused("23W04", constraint=GUARD), owner_without_force(db, "runs") as owner:
            owner.execute(statement)
        with refused("23W04", constraint=GUARD), db.superuser() as root:
            root.execute(statement)


def test_replication_mode_reopens_no_run(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("23W04", constraint=GUARD), superuser_replica(db) as root:
        root.execute("update durable.runs set status = 'succeeded' where run_uid = %s", (mine.settled,))


def test_an_update_that_changes_nothing_is_accepted(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db), db.as_engine() as engine:
        engine.execute("update durable.runs set status = status where run_uid = %s", (mine.settled,))


@pytest.mark.parametrize("role", [*FRONT, *BACK])
def test_no_role_adds_a_move(db: Database, role: str) -> None:
    World.of(db)
    with unchanged(db), acting(db, role) as connection:
        for statement in (
            "insert into durable.transitions values ('run', 'failed', 'running', 'again')",
            "update durable.transitions set to_status = 'running'",
            "delete from durable.transitions",
            "truncate durable.transitions",
        ):
            with refused("42501"), connection.transaction():
                connection.execute(statement.encode())


@pytest.mark.parametrize("statement", CHANGES)
def test_only_a_migration_that_lifts_the_guard_adds_a_move(db: Database, statement: str) -> None:
    with unchanged(db):
        with refused("23W01", constraint="_100_read_only"), db.as_owner() as owner:
            owner.execute(statement.encode())
        with refused("23W01", constraint="_100_read_only"), db.superuser() as root:
            root.execute(statement.encode())


def test_replication_mode_adds_no_move(db: Database) -> None:
    with unchanged(db), refused("23W01", constraint="_100_read_only"), superuser_replica(db) as root:
        root.execute("insert into durable.transitions values ('run', 'failed', 'running', 'again')")


@pytest.mark.parametrize("mode", ["origin", "replica"])
def test_nobody_empties_the_table(db: Database, mode: str) -> None:
    with unchanged(db):
        with refused("23W01", constraint="_100_read_only_truncate"), db.as_owner() as owner:
            owner.execute("truncate durable.transitions")
        with refused("23W01", constraint="_100_read_only_truncate"), db.superuser() as root:
            root.execute(f"set local session_replication_role = {mode}".encode())
            root.execute("truncate durable.transitions")


def test_nobody_copies_moves_in(db: Database) -> None:
    into = "copy durable.transitions from stdin"
    with unchanged(db), refused("23W01"), db.as_owner() as owner, owner.cursor().copy(into) as copy:
        copy.write_row(("run", "failed", "running", "again"))
