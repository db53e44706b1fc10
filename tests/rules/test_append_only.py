"""Rule append-only: events, checkpoints, calls and audit rows are never changed; no row of any table is removed."""

from typing import Any

import pytest

from tests.rules.roles import APPEND_ONLY, BACK, FRONT, acting
from tests.rules.rows import checkpoint_row, effect_call_row, event_row, insert, row_of
from tests.rules.world import World, owner_without_force, superuser_replica, unchanged
from tests.support.calls import call
from tests.support.harness import Database, refused

ROWS_STAY = ("app_states", "user_states", "sessions", "runs", "effects", "tools")
FORGERY = {
    "events": "author = 'forged'",
    "audit_log": "reason = 'forged'",
    "effect_calls": "user_id = 'forged'",
    "checkpoints": "state = '{}'",
}

REWRITES = [
    *((table, f"update durable.{table} set {FORGERY[table]}") for table in APPEND_ONLY),
    *((table, f"delete from durable.{table}") for table in (*APPEND_ONLY, *ROWS_STAY)),
]
# Each breaks one constraint only: the next step would be 2, after 1.
UNFIT_CHECKPOINTS: list[tuple[str, dict[str, Any]]] = [
    ("checkpoints_pkey", {"step": 1, "previous_step": None}),
    ("checkpoints_steps_have_no_gap", {"step": 3}),
    ("checkpoints_steps_have_no_gap", {"step": 2, "previous_step": None}),
    ("checkpoints_steps_have_no_gap", {"step": 0}),
    ("checkpoints_step_before_exists", {"step": 3, "previous_step": 2}),
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


@pytest.mark.parametrize("table", ["events", "effect_calls", "checkpoints"])
@pytest.mark.parametrize("name", ["app", "operator", "maintainer", "auditor", "steward", "janitor"])
def test_only_the_engine_adds_a_row(db: Database, name: str, table: str) -> None:
    row = row_of(table, World.of(db).mine)
    with unchanged(db), refused("42501"), acting(db, name) as connection:
        insert(connection, table, row)


@pytest.mark.parametrize("table", ["events", "effect_calls", "checkpoints"])
def test_the_owner_adds_no_row(db: Database, table: str) -> None:
    row = row_of(table, World.of(db).mine)
    with unchanged(db), refused("42W03"), db.as_owner("T1", "U1") as owner:
        insert(owner, table, row)


@pytest.mark.parametrize(("constraint", "changes"), UNFIT_CHECKPOINTS)
def test_the_table_refuses_to_the_engine_a_gap_or_a_second_checkpoint_of_a_step(
    db: Database, constraint: str, changes: dict[str, Any]
) -> None:
    mine = World.of(db).mine
    sqlstate = {"checkpoints_pkey": "23505", "checkpoints_step_before_exists": "23503"}.get(constraint, "23514")
    with unchanged(db), refused(sqlstate, constraint=constraint), db.as_engine() as engine:
        insert(engine, "checkpoints", checkpoint_row(mine, **changes))


def test_the_table_accepts_the_next_checkpoint(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_engine() as engine:
        assert insert(engine, "checkpoints", checkpoint_row(mine)) == 1


@pytest.mark.parametrize("step", [0, 3, 9])
def test_a_checkpoint_after_a_gap_or_before_the_first_is_refused(db: Database, step: int) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("55W10", constraint="checkpoints_steps_have_no_gap"), db.as_app() as app:
        call(app, "save_checkpoint", run_uid=mine.running, attempt=1, step=step, state="{}")


@pytest.mark.parametrize("changes", [{"state": "{}"}, {"schema_version": 2}, {"state": None}], ids=str)
@pytest.mark.parametrize("function", ["save_checkpoint", "record_step"])
def test_a_step_is_saved_once(db: Database, function: str, changes: dict[str, Any]) -> None:
    mine = World.of(db).mine
    if function == "record_step" and "state" in changes:
        changes = {"state": changes["state"] or "null"}
    again = {"run_uid": mine.running, "attempt": 1, "step": 1, "state": '{"todo": ["answer"]}'}
    with unchanged(db):
        with db.as_app() as app:
            assert call(app, function, **again)["outcome"] == "already_saved"
        with refused("23W11", constraint="checkpoints_pkey"), db.as_app() as app:
            call(app, function, **{**again, **changes})


def test_a_step_is_recorded_as_one_or_not_at_all(db: Database) -> None:
    mine = World.of(db).mine
    events = '[{"author": "agent", "content": {"text": "done"}, "event_id": "e-1"}]'
    finished = f'[{{"effect_uid": "{mine.begun}", "status": "succeeded", "result": {{"id": 8}}}}]'
    with unchanged(db), refused("55W10"), db.as_app() as app:
        step = {"run_uid": mine.running, "attempt": 1, "step": 3, "state": "{}"}
        call(app, "record_step", events=events, finished=finished, **step)


def test_an_effect_is_asked_for_once_an_attempt(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("23505", constraint="effect_calls_pkey"), db.as_engine() as engine:
        insert(engine, "effect_calls", effect_call_row(mine, attempt=1))


def test_a_call_is_of_an_effect_that_is_there(db: Database) -> None:
    mine = World.of(db).mine
    nothing = effect_call_row(mine, effect_uid="00000000-0000-7000-8000-000000000000")
    with unchanged(db), refused("23503", constraint="effect_calls_effect_exists"), db.as_engine() as engine:
        insert(engine, "effect_calls", nothing)


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
