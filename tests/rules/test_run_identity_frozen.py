"""Rule run-identity-frozen: names, owners and input of a row stay; its name never comes back with another answer."""

import pytest

from tests.rules.roles import BACK, FRONT, acting
from tests.rules.rows import app_state_row, insert, run_row, session_row, tool_row, user_state_row
from tests.rules.world import World, owner_without_force, superuser_replica, unchanged
from tests.support.calls import call
from tests.support.harness import Connection, Database, refused, rows

GUARD = "_300_frozen"
UID = "'00000000-0000-7000-8000-000000000000'"
# Column by column, with a value that no constraint objects to. Rows without references: foreign keys come first.
FROZEN = {
    "app_states": {"tenant_id": "'T9'", "app_name": "'other'"},
    "user_states": {"tenant_id": "'T9'", "user_id": "'U9'", "app_name": "'other'"},
    "sessions": {
        "tenant_id": "'T9'",
        "session_uid": UID,
        "app_name": "'other'",
        "user_id": "'U9'",
        "session_id": "'renamed'",
        "opened_with": "'{\"b\": 1}'",
        "created_at": "'2000-01-01'",
    },
    "runs": {
        "tenant_id": "'T9'",
        "run_uid": UID,
        "session_uid": UID,
        "user_id": "'U9'",
        "invocation_id": "'renamed'",
        "generation": "7",
        "trigger": "'cron'",
        "input": "'{}'",
        "started_at": "'2000-01-01'",
        "first_attempt": "2, attempt = 2",
    },
    "effects": {
        "tenant_id": "'T9'",
        "effect_uid": UID,
        "user_id": "'U9'",
        "app_name": "'other'",
        "run_uid": UID,
        "step": "7",
        "ordinal": "7",
        "tool": "'other'",
        "scope": "'tenant'",
        "intent": "'other'",
        "args": "'{}'",
        "args_digest": "sha256('')",
        "failures": "7",
        "idempotency_key": "'other'",
        "provider_dedupes_for": "'1 day'",
        "first_begun_at": "'2000-01-01', begun_at = '2000-01-01'",
    },
    "tools": {"tenant_id": "'T9'", "app_name": "'other'", "tool": "'other'"},
}
CASES = [(table, column) for table, columns in FROZEN.items() for column in columns]


def rename(world: World, table: str, column: str) -> bytes:
    where = {
        "app_states": "app_name = 'sales'",
        "user_states": "app_name = 'sales'",
        "sessions": f"session_uid = '{world.mine.closed}'",
        "runs": f"run_uid = '{world.mine.running}'",
        # Under an intent: a change of its scope alone meets no constraint.
        "effects": f"effect_uid = '{world.mine.unverified}'",
        "tools": "tenant_id = 'T1'",
    }[table]
    return f"update durable.{table} set {column} = {FROZEN[table][column]} where {where}".encode()


def meets_guard(root: Connection, world: World, table: str, column: str) -> None:
    with refused("23W03", constraint=GUARD) as refusal, root.transaction():
        # In replica mode no foreign key is in the way, and ours is ENABLE ALWAYS.
        root.execute(rename(world, table, column))
    assert (refusal.diag.table_name, refusal.diag.column_name) == (table, column)


@pytest.mark.parametrize(("table", "column"), CASES)
def test_a_frozen_column_stays_even_in_replication_mode(db: Database, table: str, column: str) -> None:
    world = World.of(db)
    with superuser_replica(db) as root:
        if table in {"app_states", "user_states"}:
            row = app_state_row("T1") if table == "app_states" else user_state_row(world.mine)
            insert(root, table, row)
        meets_guard(root, world, table, column)


@pytest.mark.parametrize("table", ["sessions", "runs", "effects", "tools"])
def test_a_superuser_and_an_owner_who_lifts_force_rename_nothing(db: Database, table: str) -> None:
    world = World.of(db)
    column = {"sessions": "session_id", "runs": "invocation_id", "effects": "args", "tools": "tool"}[table]
    statement = rename(world, table, column)
    with unchanged(db):
        with refused("42W03"), db.as_owner("T1", "U1") as owner:
            owner.execute(statement)
        for block in (db.superuser(), owner_without_force(db, table)):
            with refused("23W03", constraint=GUARD), block as bold:
                bold.execute(statement)


@pytest.mark.parametrize("role", [*FRONT, *BACK])
def test_no_role_renames_a_row(db: Database, role: str) -> None:
    world = World.of(db)
    with unchanged(db), acting(db, role) as connection:
        for table, column in CASES:
            with refused("42501"), connection.transaction():
                connection.execute(rename(world, table, column))


@pytest.mark.parametrize("role", [*FRONT, *BACK])
def test_no_role_removes_a_run_to_insert_it_again(db: Database, role: str) -> None:
    mine = World.of(db).mine
    with unchanged(db), acting(db, role) as connection:
        for statement in (
            "delete from durable.runs where run_uid = %s",
            "update durable.runs set invocation_id = 'elsewhere' where run_uid = %s",
            "update durable.runs set generation = generation + 1 where run_uid = %s",
            "with gone as (delete from durable.runs where run_uid = %s returning *) select * from gone",
        ):
            with refused("42501"), connection.transaction():
                connection.execute(statement, (mine.settled,))


def test_the_engine_inserts_no_second_answer(db: Database) -> None:
    mine = World.of(db).mine
    again = run_row(mine, invocation_id="inv-1", input='{"text": "refund order 7"}')
    with unchanged(db):
        with refused("23505", constraint="runs_one_of_an_invocation"), db.as_engine() as engine:
            insert(engine, "runs", again)
        for column in ("status", "tools_executed", "result", "settled_at", "started_at"):
            with refused("42501"), db.as_engine() as engine:
                insert(engine, "runs", {**run_row(mine), column: None})
        with refused("23505", constraint="runs_one_of_an_invocation"), db.as_engine() as engine:
            engine.execute(
                """
                insert into durable.runs (
                    tenant_id, user_id, session_uid, invocation_id, generation, trigger, lease_holder, lease_expires_at
                )
                values ('T1', 'U1', %s, 'inv-1', 0, 'user', 'w-9', now())
                on conflict (tenant_id, run_uid) do update
                set status = 'failed', lease_holder = null, settled_at = now()
                """,
                (mine.session,),
            )
        with refused("23W02", constraint="_200_write_once"), db.as_engine() as engine:
            engine.execute(
                """
                insert into durable.runs (
                    tenant_id, user_id, session_uid, invocation_id, generation, trigger, lease_holder, lease_expires_at
                )
                values ('T1', 'U1', %s, 'inv-1', 0, 'user', 'w-9', now())
                on conflict (tenant_id, session_uid, invocation_id, generation) do update set tools_executed = '{}'
                """,
                (mine.session,),
            )


def test_a_retry_gets_the_recorded_answer(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db), db.as_app() as app:
        answer = call(app, "start_run", session_uid=mine.session, invocation_id="inv-1")
    assert (answer["outcome"], answer["result"], answer["tools_executed"]) == ("settled", {"n": 1}, ["refund"])


@pytest.mark.parametrize("invocation", ["inv-1", "inv-2"])
def test_another_input_under_the_same_name_is_refused(db: Database, invocation: str) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("23W07"), db.as_app() as app:
        call(app, "start_run", session_uid=mine.session, invocation_id=invocation, input='{"text": "refund order 8"}')


def test_an_open_session_keeps_what_it_was_opened_with(db: Database) -> None:
    World.of(db)
    with unchanged(db), refused("23W09"), db.as_app() as app:
        call(app, "open_session", app_name="support", session_id="s-1", state='{"a": 2}')


@pytest.mark.parametrize("constraint", ["sessions_one_open_of_a_name", "sessions_pkey"])
def test_a_name_has_one_open_session(db: Database, constraint: str) -> None:
    mine = World.of(db).mine
    again = {"session_id": "s-1"} if constraint == "sessions_one_open_of_a_name" else {"session_uid": mine.session}
    with unchanged(db), refused("23505", constraint=constraint), db.as_engine() as engine:
        insert(engine, "sessions", session_row(mine, **again))


def test_a_tool_has_one_class(db: Database) -> None:
    World.of(db)
    row = tool_row("T1", app_name="support", tool="search")
    with unchanged(db), refused("23505", constraint="tools_pkey"), db.as_steward() as steward:
        insert(steward, "tools", row)


@pytest.mark.parametrize("replay_class", ["", "safe", "EFFECT"])
def test_a_tool_has_a_class_that_is_known(db: Database, replay_class: str) -> None:
    World.of(db)
    with unchanged(db), refused("23514", constraint="tools_class_is_known"), db.as_steward() as steward:
        insert(steward, "tools", tool_row("T1", replay_class=replay_class))


@pytest.mark.parametrize("table", ["app_states", "user_states"])
def test_a_state_row_is_there_once(db: Database, table: str) -> None:
    mine = World.of(db).mine
    row = app_state_row("T1") if table == "app_states" else user_state_row(mine)
    with unchanged(db), refused("23505", constraint=f"{table}_pkey"), db.as_engine() as engine:
        insert(engine, table, {**row, "app_name": "support"})


def test_a_closed_session_never_opens_again(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        opened = call(app, "open_session", app_name="support", session_id="s-2")
        for function, arguments in {
            "append_event": {"author": "user", "content": "{}"},
            "start_run": {"invocation_id": "inv-9"},
            "read_events": {},
        }.items():
            with refused("55W01"), app.transaction():
                call(app, function, session_uid=mine.closed, **arguments)
    assert (opened["outcome"], opened["session_uid"] == mine.closed) == ("created", False)
    (closed,) = [row for row in rows(db, "sessions") if row["session_uid"] == mine.closed]
    assert closed["close_reason"] == "done"
