"""Rule least-privilege: exactly the privileges of privileges.txt; PUBLIC and roles outside the five have none."""

import pytest

from tests.rules import privileges
from tests.rules.roles import BACK, DATA, FRONT, READABLE, acting
from tests.rules.world import World, unchanged
from tests.support.calls import call, call_all
from tests.support.harness import Connection, Database, refused, value

OF_THE_APP = (
    *("open_session", "close_session", "append_event", "start_run", "settle_run", "renew_lease", "interrupt_run"),
    *("begin_effect", "finish_effect", "save_checkpoint", "record_step"),
)
CLOSED = [
    ("maintainer", [*DATA]),
    *((role, [table for table in DATA if table not in READABLE[role]]) for role in ("app", "engine", "steward")),
    ("janitor", [table for table in DATA if table not in {"runs", "sessions", "effects", "effect_calls"}]),
]
# Whatever a caller says, or an outside system answered.
CONTENT = {
    "sessions": "session_id state opened_with close_reason",
    "events": "author content metadata tool_calls extra_tool_calls",
    "runs": "trigger input result error interrupted_with tools_executed",
    "effects": "tool intent args args_digest idempotency_key result error evidence",
    "checkpoints": "state digest",
    "audit_log": "reason detail",
}
WRITES = (
    "insert into durable.{t} default values",
    "update durable.{t} set tenant_id = tenant_id",
    "delete from durable.{t}",
    "select 1 from durable.{t} for update",
    "select 1 from durable.{t} for key share",
    "copy durable.{t} from stdin",
)


def test_privileges_are_exactly_these(db: Database) -> None:
    with db.superuser() as root:
        found = {fact.name for fact in privileges.live(root)}
    expected = privileges.expected()
    difference = [
        *(f"extra:   {fact}" for fact in sorted(found - expected)),
        *(f"missing: {fact}" for fact in sorted(expected - found)),
    ]
    assert not difference, "\n" + "\n".join(difference)


def test_no_function_has_two_signatures(db: Database) -> None:
    """The matrix names functions by their names alone."""
    with db.superuser() as root:
        found = root.execute(
            """
            select proname from pg_proc where pronamespace = 'durable'::regnamespace
            group by proname having count(*) > 1
            """
        ).fetchall()
    assert found == []


@pytest.mark.parametrize("role", FRONT)
def test_a_front_role_writes_to_no_table(db: Database, role: str) -> None:
    World.of(db)
    with unchanged(db), acting(db, role) as connection:
        for table in DATA:
            for statement in WRITES:
                with refused("42501"), connection.transaction():
                    connection.execute(statement.format(t=table).encode())


@pytest.mark.parametrize(("role", "tables"), CLOSED, ids=[role for role, _ in CLOSED])
def test_a_role_reads_no_table_that_it_has_no_business_with(db: Database, role: str, tables: list[str]) -> None:
    World.of(db)
    with acting(db, role) as connection:
        for table in tables:
            for what in ("*", "tenant_id", "count(*)"):
                with refused("42501"), connection.transaction():
                    connection.execute(f"select {what} from durable.{table}".encode())


@pytest.mark.parametrize("role", ["maintainer", "janitor"])
@pytest.mark.parametrize(("table", "columns"), CONTENT.items())
def test_who_keeps_all_tenants_going_reads_nothing_that_anybody_said(
    db: Database, role: str, table: str, columns: str
) -> None:
    World.of(db)
    with unchanged(db), acting(db, role) as connection:
        for column in columns.split():
            for statement in (
                f"select {column} from durable.{table}",
                f"select 1 from durable.{table} where {column} is null",
                f"select t from durable.{table} as t",
            ):
                with refused("42501"), connection.transaction():
                    connection.execute(statement.encode())


def test_a_maintainer_s_list_has_no_content(db: Database) -> None:
    world = World.of(db)
    with db.as_app("T1", "U1") as app:
        call(app, "interrupt_run", run_uid=world.mine.running, attempt=1, error='{"said": "a secret"}')
    with db.as_maintainer() as maintainer:
        listed = [{**row, "since": None} for row in call_all(maintainer, "list_resumable")]
    expected = {
        "tenant_id": "T1",
        "user_id": "U1",
        "app_name": "support",
        "session_uid": world.mine.session,
        "run_uid": world.mine.running,
        "invocation_id": "inv-2",
        "status": "interrupted",
        "attempt": 1,
        "since": None,
        "unverified": 2,
    }
    assert listed == [expected]


@pytest.mark.parametrize("role", ["app", "operator", "auditor", "engine", "steward"])
@pytest.mark.parametrize("function", ["list_resumable", "reap_runs"])
def test_only_the_maintainer_calls_for_all_tenants(db: Database, role: str, function: str) -> None:
    World.of(db)
    with unchanged(db), refused("42501", match="permission denied for function"), acting(db, role) as connection:
        connection.execute(f"select durable.{function}()".encode())


@pytest.mark.parametrize("role", ["app", "maintainer", "auditor", "engine", "janitor"])
@pytest.mark.parametrize("function", ["declare_tools", "set_tool"])
def test_only_an_operator_says_what_a_tool_is(db: Database, role: str, function: str) -> None:
    World.of(db)
    with unchanged(db), refused("42501", match="permission denied for function"), acting(db, role) as connection:
        connection.execute(f"select durable.{function}()".encode())


@pytest.mark.parametrize("role", ["maintainer", "auditor", "janitor"])
@pytest.mark.parametrize("function", ["cancel_run", "resolve_effect", "list_effects", "load_checkpoint", "list_tools"])
def test_only_app_and_operator_call_what_either_may(db: Database, role: str, function: str) -> None:
    World.of(db)
    with unchanged(db), refused("42501", match="permission denied for function"), acting(db, role) as connection:
        connection.execute(f"select durable.{function}()".encode())


@pytest.mark.parametrize("role", ["app", "operator"])
@pytest.mark.parametrize("function", ["cancel_run", "resolve_effect"])
def test_the_other_half_of_a_call_is_closed(db: Database, role: str, function: str) -> None:
    mine = World.of(db).mine
    half = function.replace("_", "_tenant_" if role == "app" else "_own_")
    given = (
        f"'{mine.running}', 'x'" if function == "cancel_run" else f"'{mine.unverified}', 'failed', '{{}}', null, null"
    )
    with unchanged(db), refused("42501", match="permission denied for function"), acting(db, role) as connection:
        connection.execute(f"select durable.{half}({given})".encode())


def test_the_app_reads_no_audit_row(db: Database) -> None:
    World.of(db)
    with refused("42501"), db.as_app() as app:
        app.execute("select * from durable.audit_log")


@pytest.mark.parametrize("role", ["operator", "maintainer", "auditor", "steward", "janitor"])
@pytest.mark.parametrize("function", OF_THE_APP)
def test_only_the_app_calls_what_writes(db: Database, role: str, function: str) -> None:
    World.of(db)
    with unchanged(db), refused("42501", match="permission denied for function"), acting(db, role) as connection:
        connection.execute(f"select durable.{function}()".encode())


def _outsider(db: Database, connection: Connection) -> list[str]:
    """What a role without any grant may do in the schema, whatever it names."""
    return [
        row["name"]
        for row in connection.execute(
            """
            select 'schema' as name where has_schema_privilege('pg_monitor', 'durable', 'usage, create')
            union all
            select relname from pg_class
            where relnamespace = 'durable'::regnamespace and relkind = 'r'
                and (has_table_privilege('pg_monitor', oid, 'select, insert, update, delete, truncate')
                    or has_table_privilege('pg_monitor', oid, 'references, trigger')
                    or has_any_column_privilege('pg_monitor', oid, 'select, insert, update, references'))
            union all
            select proname from pg_proc
            where pronamespace = 'durable'::regnamespace and has_function_privilege('pg_monitor', oid, 'execute')
            """
        ).fetchall()
    ]


def test_a_role_outside_the_five_may_do_nothing(db: Database) -> None:
    with db.superuser() as root:
        assert _outsider(db, root) == []


@pytest.mark.parametrize("role", ["owner", *BACK])
def test_what_a_migration_makes_is_nothing_to_public(db: Database, role: str) -> None:
    with db.superuser() as root:
        root.execute(f"grant create on schema durable to durable_{role}".encode())
        root.execute(f"set local role durable_{role}".encode())
        root.execute("create function durable.new_one() returns integer language sql return 1")
        assert not value(root, "select has_function_privilege('pg_monitor', 'durable.new_one()', 'execute')")
        if role == "owner":
            root.execute("create domain durable.new_type as integer")
            assert not value(root, "select has_type_privilege('pg_monitor', 'durable.new_type', 'usage')")
        root.rollback()


@pytest.mark.parametrize("role", BACK)
def test_a_back_role_makes_nothing_once_a_migration_is_over(db: Database, role: str) -> None:
    with acting(db, role) as connection:
        for statement in (
            "create function durable.another() returns integer language sql return 1",
            "create table durable.another ()",
            "create type durable.another as enum ()",
            "create operator durable.= (leftarg = text, rightarg = text, function = texteq)",
        ):
            with refused("42501", match="permission denied for schema"), connection.transaction():
                connection.execute(statement.encode())
