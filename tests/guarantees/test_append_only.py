"""Rule append-only: events and audit rows are never changed or removed; rows of the other tables are never removed."""

import pytest

from tests.guarantees._roles import BACK, FRONT, acting
from tests.guarantees._world import (
    World,
    event_row,
    insert,
    owner_without_force,
    superuser_replica,
    unchanged,
)
from tests.harness import Database, refused

APPEND_ONLY = ("events", "audit_log")
ROWS_STAY = ("app_states", "user_states", "sessions", "runs")
COLUMN = {"events": "author", "audit_log": "reason"}

REWRITES = [
    *((table, f"update durable.{table} set {COLUMN[table]} = 'forged'") for table in APPEND_ONLY),
    *((table, f"delete from durable.{table}") for table in (*APPEND_ONLY, *ROWS_STAY)),
]
GUARD = dict.fromkeys(APPEND_ONLY, "_100_append_only") | dict.fromkeys(ROWS_STAY, "_100_rows_stay")


@pytest.mark.parametrize("name", [*FRONT, *BACK])
def test_no_role_may_change_or_remove_a_row(db: Database, name: str) -> None:
    World.of(db)
    statements = [statement for _, statement in REWRITES]
    statements += [f"truncate durable.{table} cascade" for table in (*APPEND_ONLY, *ROWS_STAY)]
    with unchanged(db), acting(db, name) as connection:
        for statement in statements:
            with refused("42501", match="permission denied for table"), connection.transaction():
                connection.execute(statement.encode())


@pytest.mark.parametrize(("table", "statement"), REWRITES)
def test_the_owner_is_refused(db: Database, table: str, statement: str) -> None:
    World.of(db)
    with unchanged(db), refused("42W03"), db.as_owner() as owner:
        owner.execute(statement.encode())


@pytest.mark.parametrize(("table", "statement"), REWRITES)
def test_an_owner_who_lifts_force_is_refused(db: Database, table: str, statement: str) -> None:
    World.of(db)
    with unchanged(db), refused("23W01", constraint=GUARD[table]), owner_without_force(db, table) as owner:
        owner.execute(statement.encode())


@pytest.mark.parametrize(("table", "statement"), REWRITES)
def test_a_superuser_is_refused(db: Database, table: str, statement: str) -> None:
    World.of(db)
    with unchanged(db), refused("23W01", constraint=GUARD[table]) as refusal, db.superuser() as root:
        root.execute(statement.encode())
    assert refusal.diag.table_name == table


@pytest.mark.parametrize(("table", "statement"), REWRITES)
def test_replication_mode_switches_no_guard_off(db: Database, table: str, statement: str) -> None:
    World.of(db)
    with unchanged(db), refused("23W01", constraint=GUARD[table]), superuser_replica(db) as root:
        root.execute(statement.encode())


@pytest.mark.parametrize("who", ["as_owner", "superuser"])
@pytest.mark.parametrize("table", [*APPEND_ONLY, *ROWS_STAY])
def test_nobody_truncates(db: Database, table: str, who: str) -> None:
    World.of(db)
    with unchanged(db), refused("23W01", constraint=f"{GUARD[table]}_truncate") as refusal, getattr(db, who)() as bold:
        bold.execute(f"truncate durable.{table} cascade".encode())
    assert refusal.diag.table_name == table


@pytest.mark.parametrize("table", [*APPEND_ONLY, *ROWS_STAY])
def test_replication_mode_lets_nobody_truncate(db: Database, table: str) -> None:
    World.of(db)
    constraint = f"{GUARD[table]}_truncate"
    with unchanged(db), refused("23W01", constraint=constraint) as refusal, superuser_replica(db) as root:
        root.execute(f"truncate durable.{table} cascade".encode())
    assert refusal.diag.table_name == table


@pytest.mark.parametrize(
    "conflict", ["(tenant_id, session_uid, seq)", "(tenant_id, session_uid, event_id)"], ids=["seq", "event_id"]
)
def test_an_insert_turns_into_no_update(db: Database, conflict: str) -> None:
    row = event_row(World.of(db).mine, seq=1, event_id="loose")
    upsert = f"""
        insert into durable.events ({", ".join(row)}) values ({", ".join(f"%({name})s" for name in row)})
        on conflict {conflict} do update set content = excluded.content
    """
    with unchanged(db):
        with refused("42501"), db.as_engine() as engine:
            engine.execute(upsert.encode(), row)
        with refused("23W01", constraint="_100_append_only"), db.superuser() as root:
            root.execute(upsert.encode(), row)


@pytest.mark.pg(">= 15")
@pytest.mark.parametrize("action", ["update set author = 'forged'", "delete"])
def test_a_merge_rewrites_nothing(db: Database, action: str) -> None:
    World.of(db)
    merge = f"merge into durable.events as e using (select 1) as one on true when matched then {action}"
    with unchanged(db):
        for name in ("app", "engine"):
            with refused("42501"), acting(db, name) as connection:
                connection.execute(merge.encode())
        with refused("42W03"), db.as_owner() as owner:
            owner.execute(merge.encode())
        with refused("23W01", constraint="_100_append_only"), db.superuser() as root:
            root.execute(merge.encode())


@pytest.mark.parametrize("name", ["engine", "owner"])
def test_nobody_copies_rows_in(db: Database, name: str) -> None:
    World.of(db)
    with unchanged(db), refused("0A000", match="row-level security"), acting(db, name) as connection:
        connection.execute("copy durable.events from stdin")


@pytest.mark.parametrize("name", ["app", "operator", "maintainer", "auditor", "steward", "janitor"])
def test_only_the_engine_adds_an_event(db: Database, name: str) -> None:
    row = event_row(World.of(db).mine)
    with unchanged(db), refused("42501"), acting(db, name) as connection:
        insert(connection, "events", row)


def test_the_owner_adds_no_event(db: Database) -> None:
    row = event_row(World.of(db).mine)
    with unchanged(db), refused("42W03"), db.as_owner("T1", "U1") as owner:
        insert(owner, "events", row)


def test_no_foreign_key_changes_or_removes_a_row(db: Database) -> None:
    with db.superuser() as root:
        acting = root.execute(
            """
            select conname from pg_constraint
            where connamespace = 'durable'::regnamespace and contype = 'f'
                and (confupdtype <> 'a' or confdeltype <> 'a')
            """
        ).fetchall()
    assert acting == []
