"""Rule tenant-isolation: rows of another tenant can't be seen, written, linked to or detected."""

from uuid import uuid4

import pytest

from tests.guarantees._roles import DATA, READABLE, acting
from tests.guarantees._world import (
    TOUCH,
    World,
    app_state_row,
    audit_row,
    call,
    event_row,
    insert,
    run_row,
    session_row,
    settle_all,
    unchanged,
    user_state_row,
)
from tests.harness import Database, refused, rows, value

READS = [(role, table) for role in ("app", "engine", "operator") for table in READABLE[role]]
SESSION_CALLS = ("append_event", "close_session", "read_events", "verify_session", "start_run")
RUN_CALLS = ("settle_run", "retry_verdict", "replay_verdict")
ARGUMENTS = {
    "append_event": {"author": "user", "content": "{}"},
    "start_run": {"invocation_id": "inv-9"},
}


@pytest.mark.parametrize(("role", "table"), READS)
def test_rows_of_another_tenant_are_invisible(db: Database, role: str, table: str) -> None:
    World.of(db)
    assert {"T1", "T2"} == {row["tenant_id"] for row in rows(db, table)}
    with acting(db, role, "T1", "U1") as connection:
        seen = connection.execute(f"select tenant_id from durable.{table}".encode()).fetchall()
        sought = value(connection, f"select count(*) from durable.{table} where tenant_id = 'T2'")
    assert {row["tenant_id"] for row in seen} == {"T1"}
    assert sought == 0


@pytest.mark.parametrize("table", DATA)
def test_an_auditor_sees_every_tenant(db: Database, table: str) -> None:
    World.of(db)
    with db.as_auditor() as auditor:
        seen = auditor.execute(f'select t.* from durable.{table} as t order by t::text collate "C"'.encode()).fetchall()
    assert seen == rows(db, table)


@pytest.mark.parametrize("table", [table for table in DATA if table != "audit_log"])
def test_a_row_is_not_written_into_another_tenant(db: Database, table: str) -> None:
    stranger = World.of(db).stranger
    row = {
        "app_states": app_state_row(stranger.tenant),
        "user_states": user_state_row(stranger, app_name="support"),
        "sessions": session_row(stranger),
        "events": event_row(stranger),
        "runs": run_row(stranger),
    }[table]
    with unchanged(db), refused("42501", match="row-level security"), db.as_engine("T1", "U1") as engine:
        insert(engine, table, row)


@pytest.mark.parametrize("role", ["steward", "janitor"])
def test_an_operator_s_act_is_not_logged_under_another_tenant_or_name(db: Database, role: str) -> None:
    World.of(db)
    forged = (
        [audit_row("T2"), audit_row("T1", acted_by="somebody-else"), audit_row("T1", acted_by=None)]
        if role == "steward"
        else [audit_row("T1", acted_by="on-call")]
    )
    with unchanged(db), acting(db, role, "T1", "on-call") as connection:
        for row in forged:
            with refused("42501", match="row-level security"), connection.transaction():
                insert(connection, "audit_log", row)


@pytest.mark.parametrize("table", sorted(TOUCH))
def test_an_update_without_a_condition_reaches_one_tenant(db: Database, table: str) -> None:
    settle_all(db)
    with db.as_engine("T2", "U1") as engine:
        reached = engine.execute(f"update durable.{table} set {TOUCH[table]}".encode()).rowcount
    assert reached == len([row for row in rows(db, table) if row["tenant_id"] == "T2"])


@pytest.mark.parametrize("function", SESSION_CALLS)
def test_a_session_of_another_tenant_is_as_absent_as_none(db: Database, function: str) -> None:
    stranger = World.of(db).stranger
    arguments = ARGUMENTS.get(function, {})
    with unchanged(db):
        messages = []
        for uid in (stranger.session, uuid4()):
            with refused("42W04") as refusal, db.as_app("T1", "U1") as app:
                call(app, function, session_uid=uid, **arguments)
            messages.append(str(refusal.error).replace(str(uid), "..."))
        assert messages[0] == messages[1]
        with db.as_app("T2", "U1") as app:
            assert value(app, "select count(*) from durable.read_events(session_uid => %s)", stranger.session) == 6


@pytest.mark.parametrize("function", RUN_CALLS)
def test_a_run_of_another_tenant_is_as_absent_as_none(db: Database, function: str) -> None:
    stranger = World.of(db).stranger
    with unchanged(db):
        messages = []
        for uid in (stranger.running, uuid4()):
            with refused("42W05") as refusal, db.as_app("T1", "U1") as app:
                call(app, function, run_uid=uid)
            messages.append(str(refusal.error).replace(str(uid), "..."))
        assert messages[0] == messages[1]


def test_names_of_two_tenants_never_meet(db: Database) -> None:
    World.of(db)
    with db.as_app("T3", "U1") as app:
        opened = call(app, "open_session", app_name="support", session_id="s-1", state='{"other": true}')
        said = call(
            app,
            "append_event",
            session_uid=opened["session_uid"],
            author="user",
            content='{"text": "another story"}',
            event_id="loose",
            invocation_id="inv-1",
        )
        state = call(app, "get_state", session_uid=opened["session_uid"])["state"]
    assert (opened["outcome"], said["outcome"], said["seq"]) == ("created", "appended", 1)
    assert state == {"other": True}


@pytest.mark.parametrize("table", ["sessions", "user_states", "events", "runs"])
def test_a_row_does_not_link_to_another_tenant_s(db: Database, table: str) -> None:
    world = World.of(db)
    mine, stranger = world.mine, world.stranger
    with unchanged(db), refused("23503"), db.as_engine("T1", "U1") as engine:
        row = {
            "sessions": session_row(mine, app_name="only-theirs"),
            "user_states": user_state_row(mine, app_name="only-theirs"),
            "events": event_row(mine, session_uid=stranger.session),
            "runs": run_row(mine, session_uid=stranger.session),
        }[table]
        insert(engine, table, row)


def test_row_security_can_not_be_switched_off(db: Database) -> None:
    World.of(db)
    with unchanged(db):
        for role in ("app", "operator", "engine"):
            with refused("42501", match="row-level security"), acting(db, role, "T1", "U1") as connection:
                connection.execute("set local row_security = off")
                connection.execute("select * from durable.sessions")
        with refused("42501", match="row-level security"), db.as_app("T1", "U1") as app:
            app.execute("set local row_security = off")
            call(app, "open_session", app_name="support", session_id="s-1")


def test_a_cheap_function_sees_no_row_of_another_tenant(db: Database) -> None:
    World.of(db)
    with db.as_app("T1", "U1") as app:
        seen: list[str] = []
        app.add_notice_handler(lambda notice: seen.append(notice.message_primary or ""))
        app.execute(
            """
            create function pg_temp.tell(tenant text, said text) returns boolean language plpgsql cost 0.0000001
            as $$ begin raise notice '%', tenant; return true; end $$
            """
        )
        app.execute("select * from durable.events where pg_temp.tell(tenant_id, content::text)")
    assert set(seen) == {"T1"}
