"""Rule identity-required: without an identity every read and write fails loudly; the owner has none at all."""

from typing import Any
from uuid import uuid4

import pytest

from tests.rules.roles import DATA, INSERTED, READABLE, UPDATED, acting
from tests.rules.rows import audit_row, insert, row_of
from tests.rules.world import TOUCH, World, unchanged
from tests.support.calls import call
from tests.support.harness import Connection, Database, refused, value

READS = [(role, table) for role in ("app", "engine", "steward", "operator") for table in READABLE[role]]
CALLS: dict[str, dict[str, Any]] = {
    "open_session": {"app_name": "support"},
    "close_session": {"session_uid": uuid4()},
    "list_sessions": {},
    "get_state": {"app_name": "support"},
    "append_event": {"session_uid": uuid4(), "author": "user", "content": "{}"},
    "read_events": {"session_uid": uuid4()},
    "verify_session": {"session_uid": uuid4()},
    "start_run": {"session_uid": uuid4(), "invocation_id": "inv-1"},
    "settle_run": {"run_uid": uuid4(), "status": "succeeded"},
    "list_runs": {},
    "renew_lease": {"run_uid": uuid4(), "attempt": 1},
    "interrupt_run": {"run_uid": uuid4(), "attempt": 1},
    "cancel_run": {"run_uid": uuid4(), "reason": "called off"},
    "begin_effect": {"run_uid": uuid4(), "attempt": 1, "tool": "refund"},
    "finish_effect": {"effect_uid": uuid4(), "attempt": 1, "status": "succeeded"},
    "resolve_effect": {"effect_uid": uuid4(), "status": "failed", "evidence": '{"channel": "site", "seen": "nothing"}'},
    "list_effects": {},
    "save_checkpoint": {"run_uid": uuid4(), "attempt": 1, "step": 1, "state": "{}"},
    "load_checkpoint": {"run_uid": uuid4()},
    "record_step": {"run_uid": uuid4(), "attempt": 1, "step": 1, "state": "{}"},
    "list_tools": {},
    "retry_verdict": {"run_uid": uuid4()},
    "replay_verdict": {"run_uid": uuid4()},
}
OPERATORS: dict[str, dict[str, Any]] = {
    **{name: CALLS[name] for name in ("cancel_run", "resolve_effect", "list_effects", "list_tools", "list_runs")},
    "declare_tools": {"app_name": "support", "tools": '{"mail": "keyed"}'},
    "set_tool": {"app_name": "support", "tool": "mail", "replay_class": "keyed", "reason": "it is"},
}
UNFIT = [None, "", " ", "\t", " T1", "T1 ", "T1\n", "\u00a0T1", "T1\u200b\ufeff", "x" * 513]


@pytest.mark.parametrize(("role", "table"), READS)
def test_a_read_without_identity_is_refused(db: Database, role: str, table: str) -> None:
    World.of(db)
    with refused("42W01"), acting(db, role, None, None) as connection:
        connection.execute(f"select count(*) from durable.{table}".encode())


@pytest.mark.parametrize(("role", "table"), INSERTED)
def test_a_row_without_identity_is_not_written(db: Database, role: str, table: str) -> None:
    row = row_of(table, World.of(db).mine)
    with unchanged(db), refused("42W01"), acting(db, role, None, None) as connection:
        insert(connection, table, row)


@pytest.mark.parametrize(("role", "table"), UPDATED)
def test_an_update_without_identity_is_refused(db: Database, role: str, table: str) -> None:
    World.of(db)
    with unchanged(db), refused("42W01"), acting(db, role, None, None) as connection:
        connection.execute(f"update durable.{table} set {TOUCH[table]}".encode())


@pytest.mark.parametrize("role", ["engine", "steward"])
def test_an_act_without_identity_is_not_logged(db: Database, role: str) -> None:
    World.of(db)
    with unchanged(db), refused("42W01"), acting(db, role, None, None) as connection:
        insert(connection, "audit_log", audit_row("T1"))


@pytest.mark.parametrize("table", DATA)
def test_the_owner_reads_and_writes_nothing_loudly(db: Database, table: str) -> None:
    World.of(db)
    with unchanged(db):
        for statement in (
            f"select count(*) from durable.{table}",
            f"update durable.{table} set tenant_id = 'T9'",
            f"delete from durable.{table}",
            f"insert into durable.{table} select * from durable.{table}",
        ):
            with refused("42W03"), db.as_owner("T1", "U1") as owner:
                owner.execute(statement.encode())


@pytest.mark.parametrize("table", DATA)
def test_the_owner_is_refused_where_no_row_would_be_met(db: Database, table: str) -> None:
    World.of(db)
    with db.as_owner("T1", "U1") as owner:
        for statement in (
            f"select * from durable.{table} where tenant_id = 'none such'",
            f"update durable.{table} set tenant_id = tenant_id where tenant_id = 'none such'",
            f"delete from durable.{table} where tenant_id = 'none such'",
        ):
            with refused("42W03"), owner.transaction():
                owner.execute(statement.encode())


@pytest.mark.parametrize("role", ["app", "engine", "steward", "operator"])
def test_a_read_without_identity_is_refused_where_no_row_would_be_met(db: Database, role: str) -> None:
    World.of(db)
    with acting(db, role, None, None) as connection:
        for table in READABLE[role]:
            with refused("42W01"), connection.transaction():
                connection.execute(f"select * from durable.{table} where tenant_id = 'none such'".encode())


@pytest.mark.parametrize("function", sorted(CALLS))
def test_a_call_without_identity_is_refused(db: Database, function: str) -> None:
    World.of(db)
    with unchanged(db), refused("42W01"), db.as_app(None, None) as app:
        call(app, function, **CALLS[function])


@pytest.mark.parametrize("function", sorted(OPERATORS))
def test_an_operator_s_call_without_identity_is_refused(db: Database, function: str) -> None:
    World.of(db)
    with unchanged(db), refused("42W01"), db.as_operator(None, None) as operator:
        call(operator, function, **OPERATORS[function])


def test_every_function_that_takes_me_is_called_here(db: Database) -> None:
    with db.superuser() as root:
        found = root.execute(
            """
            select p.proname from pg_proc as p
            where p.pronamespace = 'durable'::regnamespace and 'me' = any (p.proargnames) and p.pronargdefaults > 0
            """
        ).fetchall()
    assert {row["proname"] for row in found} == {*CALLS, *OPERATORS}


@pytest.mark.parametrize("function", sorted({*CALLS, *OPERATORS}))
def test_an_identity_made_up_by_hand_is_refused(db: Database, function: str) -> None:
    World.of(db)
    arguments = {**CALLS, **OPERATORS}[function]
    given = "".join(f", {name} => %({name})s" for name in arguments)
    query = f"select * from durable.{function}(me => %(forged)s{given})"
    role = "app" if function in CALLS else "operator"
    with unchanged(db), acting(db, role, "T1", "U1") as connection:
        for forged in ('["T1", "U2"]', '["T1","U1"]', "", "T1", "null"):
            with refused("42W02"), connection.transaction():
                connection.execute(query.encode(), {"forged": forged, **arguments})


@pytest.mark.parametrize("tenant_or_user", ["tenant_id", "user_id"])
def test_half_an_identity_is_none(db: Database, tenant_or_user: str) -> None:
    World.of(db)
    with unchanged(db), refused("42W01"), db.as_app(None, None) as app:
        app.execute(f"set local durable.{tenant_or_user} = 'T1'".encode())
        app.execute("select * from durable.sessions")


def test_an_identity_ends_with_its_transaction(db: Database) -> None:
    World.of(db)
    with db.connect("app") as app:
        app.execute("select durable.act_as('T1', 'U1')")
        assert value(app, "select count(*) from durable.sessions") == 2
        app.commit()
        for statement in ("select count(*) from durable.sessions", "select durable.current_tenant()"):
            with refused("42W01"), app.transaction():
                app.execute(statement.encode())
        with app.transaction():
            app.execute("select durable.act_as('T2', 'U1')")
            assert value(app, "select distinct tenant_id from durable.sessions") == "T2"


def test_an_identity_is_gone_when_its_savepoint_is_rolled_back(db: Database) -> None:
    World.of(db)
    with refused("42W01"), db.connect("app") as app:
        with app.transaction(force_rollback=True):
            app.execute("select durable.act_as('T1', 'U1')")
        app.execute("select count(*) from durable.sessions")


@pytest.mark.parametrize("place", ["tenant", "user"])
@pytest.mark.parametrize("name", UNFIT, ids=[ascii(name)[:12] for name in UNFIT])
def test_an_unfit_name_is_refused(db: Database, name: str | None, place: str) -> None:
    identity = (name, "U1") if place == "tenant" else ("T1", name)
    with refused("22W01") as refusal, db.connect("app") as app:
        app.execute("select durable.act_as(%s, %s)", identity)
    assert refusal.diag.column_name == f"{place}_id"


@pytest.mark.parametrize("standard", ["on", "off"])
@pytest.mark.parametrize(
    "name", ["x", "x" * 512, "o'brien", 'a"b', "a\\'; reset role; --", "\\", "$$", "%s", "ñ\U0001f600"]
)
def test_a_name_is_taken_exactly_as_given(db: Database, name: str, standard: str) -> None:
    with db.connect("app") as app:
        app.execute(f"set local standard_conforming_strings = {standard}".encode())
        app.execute("select durable.act_as(%s, %s)", (name, name))
        assert value(app, "select durable.current_tenant()") == name
        assert value(app, "select durable.current_user_id()") == name


def _second_identity(app: Connection, tenant: str, user: str) -> None:
    app.execute("select durable.act_as(%s, %s)", (tenant, user))


@pytest.mark.parametrize(("tenant", "user"), [("T1", "U2"), ("T2", "U1"), ("T2", "U2")])
def test_a_second_identity_in_one_transaction_is_refused(db: Database, tenant: str, user: str) -> None:
    with db.as_app("T1", "U1") as app:
        _second_identity(app, "T1", "U1")  # the same one again is fine
        with refused("42W02"), app.transaction():
            _second_identity(app, tenant, user)
        assert value(app, "select durable.current_user_id()") == "U1"
        with refused("42W02"), app.transaction():
            call(app, "list_sessions", me=(tenant, user))
