"""Rule user-isolation: rows of another user of the same tenant can't be seen, written, linked to or detected."""

from typing import Any
from uuid import uuid4

import pytest

from tests.rules.roles import PERSONAL, acting
from tests.rules.rows import effect_row, event_row, insert, row_of, run_row, session_row, user_state_row
from tests.rules.test_tenant_isolation import EFFECT_CALLS, RUN_CALLS
from tests.rules.world import TOUCH, World, settle_all, unchanged
from tests.support.calls import call, call_all
from tests.support.harness import Database, refused, rows, value


@pytest.mark.parametrize("table", PERSONAL)
@pytest.mark.parametrize("role", ["app", "engine"])
def test_rows_of_another_user_are_invisible(db: Database, role: str, table: str) -> None:
    World.of(db)
    assert {"U1", "U2"} == {row["user_id"] for row in rows(db, table) if row["tenant_id"] == "T1"}
    with acting(db, role, "T1", "U1") as connection:
        seen = connection.execute(f"select user_id from durable.{table}".encode()).fetchall()
        sought = value(connection, f"select count(*) from durable.{table} where user_id = 'U2'")
    assert {row["user_id"] for row in seen} == {"U1"}
    assert sought == 0


@pytest.mark.parametrize("table", PERSONAL)
def test_an_operator_sees_the_users_of_its_tenant(db: Database, table: str) -> None:
    World.of(db)
    with db.as_operator("T1") as operator:
        seen = operator.execute(f"select distinct user_id from durable.{table}".encode()).fetchall()
    assert {row["user_id"] for row in seen} == {"U1", "U2"}


@pytest.mark.parametrize("table", PERSONAL)
def test_a_row_is_not_written_for_another_user(db: Database, table: str) -> None:
    neighbour = World.of(db).neighbour
    if table == "user_states":
        row = user_state_row(neighbour, app_name="support", user_id="U3")
    else:
        row = row_of(table, neighbour)
    with unchanged(db), refused("42501", match="row-level security"), db.as_engine("T1", "U1") as engine:
        insert(engine, table, row)


@pytest.mark.parametrize("table", ["user_states", "sessions", "runs", "effects"])
def test_an_update_without_a_condition_reaches_one_user(db: Database, table: str) -> None:
    settle_all(db)
    with db.as_engine("T1", "U2") as engine:
        reached = engine.execute(f"update durable.{table} set {TOUCH[table]}".encode()).rowcount
    assert reached == len([row for row in rows(db, table) if (row["tenant_id"], row["user_id"]) == ("T1", "U2")])


@pytest.mark.parametrize("table", ["events", "runs"])
def test_a_row_does_not_link_to_another_user_s_session(db: Database, table: str) -> None:
    world = World.of(db)
    row = {
        "events": event_row(world.mine, session_uid=world.neighbour.session),
        "runs": run_row(world.mine, session_uid=world.neighbour.session),
    }[table]
    with unchanged(db), refused("23503", constraint=f"{table}_session_is_the_users"), db.as_engine() as engine:
        insert(engine, table, row)


def test_a_session_needs_the_state_of_its_own_user(db: Database) -> None:
    world = World.of(db)
    with db.as_app("T1", "U2") as app:
        call(app, "open_session", app_name="sales", session_id="s-1")
    with unchanged(db), refused("23503", constraint="sessions_user_state_exists"), db.as_engine() as engine:
        insert(engine, "sessions", session_row(world.mine, app_name="sales"))


def test_a_user_s_state_needs_the_state_of_the_app(db: Database) -> None:
    world = World.of(db)
    with unchanged(db), refused("23503", constraint="user_states_app_exists"), db.as_engine() as engine:
        insert(engine, "user_states", user_state_row(world.mine, app_name="never-opened"))


@pytest.mark.parametrize("function", ["append_event", "close_session", "read_events", "verify_session", "start_run"])
def test_a_session_of_another_user_is_as_absent_as_none(db: Database, function: str) -> None:
    neighbour = World.of(db).neighbour
    arguments = {
        "append_event": {"author": "user", "content": "{}"},
        "start_run": {"invocation_id": "inv-1"},
    }.get(function, {})
    with unchanged(db):
        messages = []
        for uid in (neighbour.session, neighbour.closed, uuid4()):
            with refused("42W04") as refusal, db.as_app("T1", "U1") as app:
                call(app, function, session_uid=uid, **arguments)
            messages.append(str(refusal.error).replace(str(uid), "..."))
    assert len(set(messages)) == 1


@pytest.mark.parametrize("function", sorted(RUN_CALLS))
def test_a_run_of_another_user_is_as_absent_as_none(db: Database, function: str) -> None:
    neighbour = World.of(db).neighbour
    with unchanged(db):
        messages = set()
        for uid in (neighbour.running, neighbour.settled, uuid4()):
            with refused("42W05") as refusal, db.as_app("T1", "U1") as app:
                call(app, function, run_uid=uid, **RUN_CALLS[function])
            messages.add(str(refusal.error).replace(str(uid), "..."))
    assert len(messages) == 1


@pytest.mark.parametrize("function", sorted(EFFECT_CALLS))
def test_an_effect_of_another_user_is_as_absent_as_none(db: Database, function: str) -> None:
    neighbour = World.of(db).neighbour
    with unchanged(db):
        messages = set()
        for uid in (neighbour.begun, neighbour.unverified, neighbour.recorded, uuid4()):
            with refused("42W07") as refusal, db.as_app("T1", "U1") as app:
                call(app, function, effect_uid=uid, **EFFECT_CALLS[function])
            messages.add(str(refusal.error).replace(str(uid), "..."))
    assert len(messages) == 1


@pytest.mark.parametrize(
    "constraint", ["effects_run_is_the_users", "effect_calls_run_is_the_users", "checkpoints_run_is_the_users"]
)
def test_a_row_does_not_link_to_another_user_s_run(db: Database, constraint: str) -> None:
    world = World.of(db)
    table = constraint.removesuffix("_run_is_the_users")
    # A step after a saved one: the run is all that is wrong.
    row = {**row_of(table, world.mine), "run_uid": world.neighbour.running}
    with unchanged(db), refused("23503", constraint=constraint), db.as_engine() as engine:
        insert(engine, table, row)


def test_an_effect_is_held_by_a_run_of_its_tenant(db: Database) -> None:
    world = World.of(db)
    attack = effect_row(world.mine, held_by=world.stranger.running)
    with unchanged(db), refused("23503", constraint="effects_holder_is_a_run"), db.as_engine() as engine:
        insert(engine, "effects", attack)


@pytest.mark.parametrize("arguments", [{}, {"status": "begun"}], ids=str)
def test_a_list_of_effects_is_the_user_s(db: Database, arguments: dict[str, Any]) -> None:
    world = World.of(db)
    with db.as_app("T1", "U1") as app:
        seen = call_all(app, "list_effects", **arguments)
    assert {row["user_id"] for row in seen} <= {"U1"}
    assert seen
    with refused("42W05"), db.as_app("T1", "U1") as app:
        call_all(app, "list_effects", run_uid=world.neighbour.running)


def test_an_intent_of_another_user_is_a_new_one(db: Database) -> None:
    World.of(db)
    with db.as_app("T1", "U3") as app:
        session = call(app, "open_session", app_name="support", session_id="s-1")["session_uid"]
        run = call(app, "start_run", session_uid=session, invocation_id="inv-1")["run_uid"]
        begun = call(app, "begin_effect", run_uid=run, attempt=1, tool="refund", intent="mail-7")
    assert begun["outcome"] == "execute"
    others = [row for row in rows(db, "effects") if row["effect_uid"] != begun["effect_uid"]]
    assert begun["idempotency_key"] not in {row["idempotency_key"] for row in others}


def test_names_of_two_users_never_meet(db: Database) -> None:
    World.of(db)
    with db.as_app("T1", "U3") as app:
        opened = call(app, "open_session", app_name="support", session_id="s-1", state='{"other": true}')
        state = call(app, "get_state", session_uid=opened["session_uid"])["state"]
    assert opened["outcome"] == "created"
    assert state == {"other": True, "app:theme": "dark"}  # the app's part is the tenant's; nothing of a user's


def test_lists_show_one_s_own_rows(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app("T1", "U1") as app:
        sessions = app.execute("select session_uid from durable.list_sessions()").fetchall()
        runs = app.execute("select run_uid from durable.list_runs()").fetchall()
    assert [row["session_uid"] for row in sessions] == [mine.session]
    assert {row["run_uid"] for row in runs} == {mine.settled, mine.running}
