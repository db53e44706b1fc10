"""Rule tenant-isolation: rows of another tenant can't be seen, written, linked to or detected."""

from typing import Any
from uuid import uuid4

import pytest

from tests.rules.roles import BACK, DATA, INSERTED, READABLE, UPDATED, acting
from tests.rules.rows import (
    audit_row,
    checkpoint_row,
    effect_call_row,
    effect_row,
    event_row,
    insert,
    row_of,
    run_row,
    session_row,
    user_state_row,
)
from tests.rules.world import TOUCH, World, settle_all, unchanged
from tests.support.calls import call, call_all
from tests.support.harness import Database, refused, rows, value

READS = [(role, table) for role in ("app", "engine", "steward", "operator") for table in READABLE[role]]
SESSION_CALLS = ("append_event", "close_session", "read_events", "verify_session", "start_run")
ARGUMENTS = {
    "append_event": {"author": "user", "content": "{}"},
    "start_run": {"invocation_id": "inv-9"},
}
# With what would be right for the run or the effect, if it were one's own.
RUN_CALLS: dict[str, dict[str, Any]] = {
    "settle_run": {"attempt": 1, "status": "succeeded"},
    "renew_lease": {"attempt": 1},
    "interrupt_run": {"attempt": 1},
    "cancel_run": {"reason": "why not"},
    "begin_effect": {"attempt": 1, "step": 2, "tool": "refund", "args": '{"order": 8}'},
    "save_checkpoint": {"attempt": 1, "step": 2, "state": "{}"},
    "record_step": {"attempt": 1, "step": 2, "state": "{}"},
    "load_checkpoint": {},
    "retry_verdict": {},
    "replay_verdict": {},
}
EFFECT_CALLS: dict[str, dict[str, Any]] = {
    "finish_effect": {"attempt": 1, "status": "succeeded"},
    "resolve_effect": {"status": "failed", "evidence": '{"channel": "their site", "seen": "nothing"}'},
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


@pytest.mark.parametrize(("role", "table"), INSERTED)
def test_a_row_is_not_written_into_another_tenant(db: Database, role: str, table: str) -> None:
    stranger = World.of(db).stranger
    row = user_state_row(stranger, app_name="support") if table == "user_states" else row_of(table, stranger)
    with unchanged(db), refused("42501", match="row-level security"), acting(db, role, "T1", "U1") as connection:
        insert(connection, table, row)


@pytest.mark.parametrize("role", BACK)
def test_an_act_is_not_logged_under_another_tenant_or_name(db: Database, role: str) -> None:
    World.of(db)
    forged = (
        [audit_row("T1", acted_by="on-call")]
        if role == "janitor"
        else [audit_row("T2"), audit_row("T1", acted_by="somebody-else"), audit_row("T1", acted_by=None)]
    )
    with unchanged(db), acting(db, role, "T1", "on-call") as connection:
        for row in forged:
            with refused("42501", match="row-level security"), connection.transaction():
                insert(connection, "audit_log", row)


@pytest.mark.parametrize(("role", "table"), UPDATED)
def test_an_update_without_a_condition_reaches_one_tenant(db: Database, role: str, table: str) -> None:
    settle_all(db)
    with acting(db, role, "T2", "U1") as connection:
        reached = connection.execute(f"update durable.{table} set {TOUCH[table]}".encode()).rowcount
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


@pytest.mark.parametrize("function", sorted(RUN_CALLS))
def test_a_run_of_another_tenant_is_as_absent_as_none(db: Database, function: str) -> None:
    stranger = World.of(db).stranger
    with unchanged(db):
        messages = set()
        for uid in (stranger.running, stranger.settled, uuid4()):
            with refused("42W05") as refusal, db.as_app("T1", "U1") as app:
                call(app, function, run_uid=uid, **RUN_CALLS[function])
            messages.add(str(refusal.error).replace(str(uid), "..."))
        assert len(messages) == 1


@pytest.mark.parametrize("function", sorted(EFFECT_CALLS))
def test_an_effect_of_another_tenant_is_as_absent_as_none(db: Database, function: str) -> None:
    stranger = World.of(db).stranger
    with unchanged(db):
        messages = set()
        for uid in (stranger.begun, stranger.unverified, stranger.recorded, uuid4()):
            with refused("42W07") as refusal, db.as_app("T1", "U1") as app:
                call(app, function, effect_uid=uid, **EFFECT_CALLS[function])
            messages.add(str(refusal.error).replace(str(uid), "..."))
        assert len(messages) == 1


@pytest.mark.parametrize("function", ["cancel_run", "resolve_effect"])
def test_an_operator_acts_in_its_own_tenant(db: Database, function: str) -> None:
    stranger = World.of(db).stranger
    key = {"run_uid": stranger.running} if function == "cancel_run" else {"effect_uid": stranger.unverified}
    sqlstate = "42W05" if function == "cancel_run" else "42W07"
    with unchanged(db), refused(sqlstate), db.as_operator("T1") as operator:
        call(operator, function, **key, **{**RUN_CALLS, **EFFECT_CALLS}[function])


@pytest.mark.parametrize("arguments", [{}, {"status": "unverified"}], ids=str)
def test_a_list_of_effects_is_the_tenant_s(db: Database, arguments: dict[str, Any]) -> None:
    stranger = World.of(db).stranger
    with db.as_operator("T1") as operator:
        seen = call_all(operator, "list_effects", **arguments)
    theirs = {row["effect_uid"] for row in rows(db, "effects") if row["tenant_id"] == "T2"}
    assert theirs
    assert not theirs & {row["effect_uid"] for row in seen}
    assert seen
    with refused("42W05"), db.as_operator("T1") as operator:
        call_all(operator, "list_effects", run_uid=stranger.running)


@pytest.mark.parametrize("scope", ["user", "tenant"])
def test_an_intent_of_another_tenant_is_a_new_one(db: Database, scope: str) -> None:
    world = World.of(db)
    intent = {"tool": "refund", "intent": "mail-7" if scope == "user" else "all-7", "scope": scope}
    if scope == "tenant":
        with db.as_app("T2", "U1") as app:
            call(app, "begin_effect", run_uid=world.stranger.running, attempt=1, **intent)
    with db.as_app("T1", "U3") as app:
        session = call(app, "open_session", app_name="support", session_id="s-1")["session_uid"]
        run = call(app, "start_run", session_uid=session, invocation_id="inv-1")["run_uid"]
        begun = call(app, "begin_effect", run_uid=run, attempt=1, **intent)
    assert begun["outcome"] == "execute"
    others = [row for row in rows(db, "effects") if row["effect_uid"] != begun["effect_uid"]]
    assert begun["idempotency_key"] not in {row["idempotency_key"] for row in others}


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


@pytest.mark.parametrize(
    "table", ["sessions", "user_states", "events", "runs", "effects", "effect_calls", "checkpoints"]
)
def test_a_row_does_not_link_to_another_tenant_s(db: Database, table: str) -> None:
    world = World.of(db)
    mine, stranger = world.mine, world.stranger
    with unchanged(db), refused("23503"), db.as_engine("T1", "U1") as engine:
        row = {
            "sessions": session_row(mine, app_name="only-theirs"),
            "user_states": user_state_row(mine, app_name="only-theirs"),
            "events": event_row(mine, session_uid=stranger.session),
            "runs": run_row(mine, session_uid=stranger.session),
            "effects": effect_row(mine, run_uid=stranger.running),
            "effect_calls": effect_call_row(mine, effect_uid=stranger.unverified),
            "checkpoints": checkpoint_row(mine, run_uid=stranger.running),
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
