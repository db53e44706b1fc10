"""Rule legal-transitions: runs and effects move only along the rows of `transitions`, those that have ended never."""

from typing import Any

import pytest

from tests.rules.roles import BACK, FRONT, acting
from tests.rules.rows import effect_row, insert, run_row
from tests.rules.world import World, owner_without_force, superuser_replica, unchanged
from tests.support.calls import call
from tests.support.harness import Connection, Database, refused, rows

RUN_MOVES = {
    ("", "running"),
    *(("running", status) for status in ("succeeded", "failed", "cancelled", "interrupted", "awaiting")),
    *(("interrupted", status) for status in ("running", "failed", "cancelled")),
    *(("awaiting", status) for status in ("running", "cancelled")),
}
EFFECT_MOVES = {
    ("", "begun"),
    *(("begun", status) for status in ("succeeded", "failed", "unverified")),
    *(("unverified", status) for status in ("succeeded", "failed", "begun")),
}
GUARD = "_400_legal_transitions"
OPEN = ("running", "interrupted", "awaiting")
RUN_STATUSES = (*OPEN, "succeeded", "failed", "cancelled", "", "done")
EFFECT_STATUSES = ("begun", "unverified", "succeeded", "failed", "", "done")
# Each leaves every written value of the ended row as it is, so that no other guard has an opinion.
RUN_REOPENINGS = [
    "status = 'succeeded'",
    "status = 'cancelled'",
    "status = 'done'",
    "attempt = attempt + 1",
    "lease_expires_at = '2999-01-01'",
    "max_attempts = 9",
]
EFFECT_REOPENINGS = [
    "status = 'succeeded'",
    "status = 'succeeded', result = '{}'",
    "attempt = attempt + 1",
    "lease_expires_at = '2999-01-01'",
    "error = '{}'",
    "evidence = '{}'",
]
CHANGES = [
    "insert into durable.transitions values ('run', 'failed', 'running', 'again')",
    "insert into durable.transitions values ('run', 'running', 'failed', '') on conflict do nothing",
    "update durable.transitions set to_status = 'running'",
    "delete from durable.transitions",
]


def move_of_a_run(run: Any, status: str) -> bytes:
    """Move a run with all that its constraints ask of the new status."""
    settled_at = "null" if status in OPEN else "now()"
    holder = "'w-9'" if status == "running" else "null"
    changes = f"status = '{status}', settled_at = {settled_at}, lease_holder = {holder}"
    return f"update durable.runs set {changes} where run_uid = '{run}'".encode()


def move_of_an_effect(effect: Any, status: str) -> bytes:
    finished_at = "now()" if status in {"succeeded", "failed"} else "null"
    changes = f"status = '{status}', finished_at = {finished_at}"
    if status == "begun":
        changes += ", begun_at = clock_timestamp()"
    return f"update durable.effects set {changes} where effect_uid = '{effect}'".encode()


def run_in(db: Database, status: str) -> Any:
    run = World.of(db).mine.running
    if status != "running":
        with db.as_engine() as engine:
            engine.execute(move_of_a_run(run, status))
    return run


def failed_effect(db: Database) -> Any:
    effect = World.of(db).mine.begun
    with db.as_app() as app:
        call(app, "finish_effect", effect_uid=effect, attempt=1, status="failed", error='{"card": "declined"}')
    return effect


def test_the_table_lists_these_moves(db: Database) -> None:
    listed = {(row["entity"], row["from_status"], row["to_status"]) for row in rows(db, "transitions")}
    assert listed == {("run", *move) for move in RUN_MOVES} | {("effect", *move) for move in EFFECT_MOVES}


def goes_only(connection: Connection, moves: set[tuple[str, str]], source: str, statements: dict[str, bytes]) -> None:
    """Try each move from one status, and take it back."""
    for status, statement in statements.items():
        if (source, status) in moves or source == status:
            with connection.transaction(force_rollback=True):
                assert connection.execute(statement).rowcount == 1
        else:
            with refused("23W04", constraint=GUARD), connection.transaction():
                connection.execute(statement)


@pytest.mark.parametrize("source", OPEN)
@pytest.mark.parametrize("role", ["engine", "steward"])
def test_an_open_run_goes_only_where_a_row_leads(db: Database, role: str, source: str) -> None:
    run = run_in(db, source)
    with unchanged(db), acting(db, role) as connection:
        goes_only(connection, RUN_MOVES, source, {status: move_of_a_run(run, status) for status in RUN_STATUSES})


@pytest.mark.parametrize("source", OPEN)
def test_the_janitor_moves_an_open_run_only_where_a_row_leads(db: Database, source: str) -> None:
    run = run_in(db, source)
    moves = {
        status: f"update durable.runs set status = '{status}', lease_holder = {holder} where run_uid = '{run}'".encode()
        for status, holder in (("running", "'w-9'"), ("interrupted", "null"), ("awaiting", "null"))
    }
    with unchanged(db), db.as_janitor() as janitor:
        goes_only(janitor, RUN_MOVES, source, moves)


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
def test_the_janitor_settles_no_run_and_finishes_no_effect(db: Database, status: str) -> None:
    mine = World.of(db).mine
    with unchanged(db), db.as_janitor() as janitor:
        with refused("42501"), janitor.transaction():
            janitor.execute(move_of_a_run(mine.running, status))
        with refused("23514", constraint="runs_open_is_not_settled"), janitor.transaction():
            janitor.execute(
                "update durable.runs set status = %s, lease_holder = null where run_uid = %s", (status, mine.running)
            )
        if status != "cancelled":
            with refused("42501"), janitor.transaction():
                janitor.execute(move_of_an_effect(mine.begun, status))
            with refused("23514", constraint="effects_final_is_finished"), janitor.transaction():
                janitor.execute("update durable.effects set status = %s where effect_uid = %s", (status, mine.begun))


@pytest.mark.parametrize("source", ["begun", "unverified"])
@pytest.mark.parametrize("role", ["engine", "steward", "janitor"])
def test_an_open_effect_goes_only_where_a_row_leads(db: Database, role: str, source: str) -> None:
    mine = World.of(db).mine
    effect = mine.begun if source == "begun" else mine.unverified
    moves = {status: move_of_an_effect(effect, status) for status in EFFECT_STATUSES}
    if role != "engine" or source == "begun":  # only it may say that an effect is begun
        del moves["begun"]
    if role == "janitor":  # which ends none: see above
        moves = {
            status: f"update durable.effects set status = '{status}' where effect_uid = '{effect}'".encode()
            for status in ("unverified", "", "done")
        }
    with unchanged(db), acting(db, role) as connection:
        goes_only(connection, EFFECT_MOVES, source, moves)


@pytest.mark.parametrize("role", BACK)
@pytest.mark.parametrize(
    "change",
    ["status = 'begun'", "status = 'begun', lease_expires_at = '2999-01-01'", "attempt = 2", "held_by = run_uid"],
)
def test_nobody_begins_an_effect_again_without_saying_when(db: Database, role: str, change: str) -> None:
    mine = World.of(db).mine
    statement = f"update durable.effects set {change} where effect_uid = %s"
    if change == "held_by = run_uid":
        statement = "update durable.effects set held_by = %s where effect_uid = %s"
    refusal = "23W04" if role == "engine" or change == "status = 'begun'" else "42501"
    parameters = (mine.settled, mine.unverified) if "held_by" in change else (mine.unverified,)
    with unchanged(db), refused(refusal), acting(db, role) as connection:
        connection.execute(statement.encode(), parameters)


@pytest.mark.parametrize("status", RUN_STATUSES)
def test_a_run_is_born_running(db: Database, status: str) -> None:
    mine = World.of(db).mine
    settled_at = None if status in OPEN else "2026-01-01"
    row = run_row(mine, status=status, settled_at=settled_at, lease_holder="w-9" if status == "running" else None)
    with db.superuser() as root:
        if status == "running":
            assert insert(root, "runs", row) == 1
            return
        with refused("23W04", constraint=GUARD), root.transaction():
            insert(root, "runs", row)


@pytest.mark.parametrize("status", EFFECT_STATUSES)
def test_an_effect_is_born_begun(db: Database, status: str) -> None:
    mine = World.of(db).mine
    row = effect_row(mine, status=status, finished_at="2026-01-01" if status in {"succeeded", "failed"} else None)
    with unchanged(db), refused("42501"), db.as_engine() as engine:
        insert(engine, "effects", row)
    with db.superuser() as root:
        if status == "begun":
            assert insert(root, "effects", row) == 1
            return
        with refused("23W04", constraint=GUARD), root.transaction():
            insert(root, "effects", row)


@pytest.mark.parametrize("change", RUN_REOPENINGS)
def test_a_settled_run_never_changes(db: Database, change: str) -> None:
    mine = World.of(db).mine
    statement = f"update durable.runs set {change} where run_uid = '{mine.settled}'".encode()
    with unchanged(db):
        with refused("23W04", constraint=GUARD), db.as_engine() as engine:
            engine.execute(statement)
        with refused("42W03"), db.as_owner("T1", "U1") as owner:
            owner.execute(statement)
        with refused("23W04", constraint=GUARD), owner_without_force(db, "runs") as owner:
            owner.execute(statement)
        with refused("23W04", constraint=GUARD), db.superuser() as root:
            root.execute(statement)


@pytest.mark.parametrize("change", EFFECT_REOPENINGS)
def test_an_effect_that_has_failed_never_changes(db: Database, change: str) -> None:
    statement = f"update durable.effects set {change} where effect_uid = '{failed_effect(db)}'".encode()
    with unchanged(db):
        with refused("23W04", constraint=GUARD), db.as_engine() as engine:
            engine.execute(statement)
        with refused("42W03"), db.as_owner("T1", "U1") as owner:
            owner.execute(statement)
        with refused("23W04", constraint=GUARD), owner_without_force(db, "effects") as owner:
            owner.execute(statement)
        with refused("23W04", constraint=GUARD), db.superuser() as root:
            root.execute(statement)


@pytest.mark.parametrize("status", ["begun", "unverified"])
@pytest.mark.parametrize("ended", ["failed", "succeeded"])
def test_an_effect_that_has_ended_is_not_opened_again(db: Database, ended: str, status: str) -> None:
    """Whichever guard comes first: what is written once is asked before the moves."""
    effect = failed_effect(db) if ended == "failed" else World.of(db).mine.done
    changes = f"status = '{status}', finished_at = null, result = null"
    statement = f"update durable.effects set {changes} where effect_uid = '{effect}'".encode()
    with unchanged(db):
        for role in ("engine", "steward"):
            with refused("23W02", constraint="_200_write_once"), acting(db, role) as connection:
                connection.execute(statement)
        with refused("23W02", constraint="_200_write_once"), superuser_replica(db) as root:
            root.execute(statement)


def test_replication_mode_reopens_nothing(db: Database) -> None:
    settled, effect = World.of(db).mine.settled, failed_effect(db)
    with unchanged(db):
        with refused("23W04", constraint=GUARD), superuser_replica(db) as root:
            root.execute("update durable.runs set status = 'succeeded' where run_uid = %s", (settled,))
        with refused("23W04", constraint=GUARD), superuser_replica(db) as root:
            root.execute("update durable.effects set status = 'succeeded' where effect_uid = %s", (effect,))


def test_an_update_that_changes_nothing_is_accepted(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db), db.as_engine() as engine:
        engine.execute("update durable.runs set status = status where run_uid = %s", (mine.settled,))
        engine.execute("update durable.effects set status = status where effect_uid = %s", (mine.done,))


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
