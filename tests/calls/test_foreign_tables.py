"""The guards on a table that is not ours: they hold against its owner, and say so when they can't."""

from typing import Any

import pytest

from tests.calls.foreign_team import Team
from tests.support.harness import PROCESS, refused, value

ONCE = "select durable.protect_write_once('public.agent_runs', 'tools_executed')"
FROZEN = "select durable.protect_frozen('public.agent_runs', 'id', 'notes')"
APPEND_ONLY = "select durable.protect_append_only('public.agent_runs')"
ROWS = "select durable.protect_rows('public.agent_runs')"
READ_ONLY = "select durable.protect_read_only('public.agent_runs')"
GUARDS = (ONCE, FROZEN, APPEND_ONLY, ROWS, READ_ONLY)


def contents(team: Team) -> list[dict[str, Any]]:
    with team.connect() as connection:
        return connection.execute("select * from public.agent_runs order by id").fetchall()


def triggers(team: Team) -> list[dict[str, Any]]:
    with team.connect() as connection:
        query = "select tgname, tgenabled, pg_get_triggerdef(oid) as definition from pg_trigger"
        return connection.execute(
            f"{query} where tgrelid = 'public.agent_runs'::regclass and not tgisinternal order by tgname".encode()
        ).fetchall()


def refuse(team: Team, sqlstate: str, constraint: str, statement: str, *, replica_too: bool = True) -> str:
    """Assert that the owner and a superuser in replica mode are refused alike; return the DETAIL."""
    before = contents(team)
    with refused(sqlstate, constraint) as refusal, team.connect() as connection:
        connection.execute(statement.encode())
    if replica_too:
        with refused(sqlstate, constraint), team.db.superuser() as root:
            root.execute("set local session_replication_role = replica")
            root.execute(statement.encode())
    assert contents(team) == before
    assert refusal.diag.schema_name == "public"
    return str(refusal.diag.message_detail)


def test_a_value_is_written_once(team: Team) -> None:
    team.do(ONCE, "update public.agent_runs set tools_executed = true")
    detail = refuse(team, "23W02", "_200_write_once", "update public.agent_runs set tools_executed = false")
    assert detail == "stored: true; refused: false"
    detail = refuse(
        team, "23W02", "_200_write_once", "update public.agent_runs set status = 'x', tools_executed = null"
    )
    assert detail == "stored: true; refused: NULL"


def test_the_same_value_again_is_a_no_op_and_other_columns_stay_free(team: Team) -> None:
    team.do(
        ONCE,
        "update public.agent_runs set tools_executed = false",
        "update public.agent_runs set tools_executed = false, status = 'done'",
        "insert into public.agent_runs values (1)"
        " on conflict (id) do update set tools_executed = agent_runs.tools_executed",
    )
    assert [(row["status"], row["tools_executed"]) for row in contents(team)] == [("done", False)]


def test_a_written_once_row_can_still_be_deleted_unless_rows_are_protected(team: Team) -> None:
    team.do(ONCE, "update public.agent_runs set tools_executed = true")
    team.do("delete from public.agent_runs")
    assert contents(team) == []


def test_a_frozen_column_keeps_what_insert_gave_it_null_included(team: Team) -> None:
    team.do(FROZEN, "update public.agent_runs set status = 'done', id = id")
    refuse(team, "23W03", "_300_frozen", "update public.agent_runs set id = 2")
    assert refuse(team, "23W03", "_300_frozen", "update public.agent_runs set notes = '{}'") == "stored: NULL"


@pytest.mark.parametrize("statement", ["update public.agent_runs set status = status", "delete from public.agent_runs"])
def test_an_append_only_table_takes_rows_and_keeps_them(team: Team, statement: str) -> None:
    team.do(APPEND_ONLY, "insert into public.agent_runs values (2)")
    refuse(team, "23W01", "_100_append_only", statement)


def test_protected_rows_may_change_but_stay(team: Team) -> None:
    team.do(ROWS, "update public.agent_runs set status = 'done'")
    refuse(team, "23W01", "_100_rows_stay", "delete from public.agent_runs")


@pytest.mark.parametrize(
    "statement",
    [
        "insert into public.agent_runs values (2)",
        "update public.agent_runs set status = status",
        "delete from public.agent_runs",
    ],
)
def test_a_read_only_table_takes_nothing(team: Team, statement: str) -> None:
    team.do(READ_ONLY)
    refuse(team, "23W01", "_100_read_only", statement)


@pytest.mark.parametrize(
    ("guard", "trigger"),
    [
        (APPEND_ONLY, "_100_append_only_truncate"),
        (ROWS, "_100_rows_stay_truncate"),
        (READ_ONLY, "_100_read_only_truncate"),
    ],
)
@pytest.mark.parametrize("cascade", ["", " cascade"])
def test_truncate_is_refused(team: Team, guard: str, trigger: str, cascade: str) -> None:
    team.do(guard)
    refuse(team, "23W01", trigger, "truncate public.agent_runs" + cascade)


@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_put_on_again_changes_nothing(team: Team, guard: str) -> None:
    team.do(guard)
    once = triggers(team)
    team.do(guard, guard)
    assert triggers(team) == once
    assert {trigger["tgenabled"] for trigger in once} == {"A"}


def test_columns_are_added_and_never_taken_away(team: Team) -> None:
    team.do(
        ONCE,
        "select durable.protect_write_once('public.agent_runs', 'status')",
        "select durable.protect_write_once('public.agent_runs', 'status', 'notes')",
        "update public.agent_runs set tools_executed = true, notes = '{}'",
    )
    for change in ("tools_executed = false", "status = 'x'", """notes = '{"a": 1}'"""):
        refuse(team, "23W02", "_200_write_once", f"update public.agent_runs set {change}")


def test_a_column_with_an_odd_name_is_guarded(team: Team) -> None:
    column = '"Odd ""Name"" ü"'
    team.do("""select durable.protect_write_once('public.agent_runs', 'Odd "Name" ü')""")
    team.do("""select durable.protect_write_once('public.agent_runs', 'status')""")
    team.do(f"update public.agent_runs set {column} = 'a'")
    assert (
        refuse(team, "23W02", "_200_write_once", f"update public.agent_runs set {column} = 'b'")
        == "stored: a; refused: b"
    )


@pytest.mark.parametrize(
    "name", ['"Odd ""Table"" ü"', '"select"', '"a.b"', '"%I %s"', '"$1"', '"it\'s"', '"back\\slash"']
)
def test_a_table_with_an_odd_name_is_guarded(team: Team, name: str) -> None:
    table = f"public.{name}"
    with team.connect() as connection:
        connection.execute(f'create table {table} (id integer, "a\'b" text, "c\\d" text)'.encode())
        connection.execute("select durable.protect_frozen(%s, %s)", (table, "a'b"))
        connection.execute("select durable.protect_frozen(%s, %s)", (table, "c\\d"))
        connection.execute("select durable.protect_append_only(%s)", (table,))
        connection.execute(f"insert into {table} values (1, 'x', 'y')".encode())
    for change in ("\"a'b\" = 'z'", '"c\\d" = null'):
        with refused("23W01"), team.connect() as connection:
            connection.execute(f"update {table} set {change}".encode())
    team.do(f"drop trigger _100_append_only on {table}")
    for change in ("\"a'b\" = 'z'", '"c\\d" = null'):
        with refused("23W03"), team.connect() as connection:
            connection.execute(f"update {table} set {change}".encode())
    team.do(f"drop table {table}")


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(
    "make",
    ["create view {} as select * from base", "create materialized view {} as select * from base", "create sequence {}"],
)
def test_what_is_no_table_is_refused(team: Team, make: str, guard: str) -> None:
    with refused("42W06"), team.connect() as connection:
        connection.execute("alter table public.agent_runs rename to base")
        connection.execute(f"set local search_path = public; {make.format('agent_runs')}".encode())
        connection.execute(guard.encode())


@pytest.mark.parametrize("guard", ["protect_write_once", "protect_frozen"])
def test_a_column_that_can_not_be_compared_is_refused(team: Team, guard: str) -> None:
    with refused("42W06", match="use jsonb instead of json"), team.connect() as connection:
        connection.execute(f"select durable.{guard}('public.agent_runs', 'raw')".encode())
    assert triggers(team) == []


@pytest.mark.parametrize("guard", ["protect_write_once", "protect_frozen"])
@pytest.mark.parametrize("column", ["nothing", "Status", "ctid", 'Odd "Name"'])
def test_a_column_that_is_not_there_is_refused(team: Team, guard: str, column: str) -> None:
    with refused("42W06", match="has no column"), team.connect() as connection:
        connection.execute(f"select durable.{guard}('public.agent_runs', 'status', %s)".encode(), (column,))
    assert triggers(team) == []


def test_a_dropped_column_is_refused(team: Team) -> None:
    team.do("alter table public.agent_runs drop column status")
    with refused("42W06"), team.connect() as connection:
        connection.execute("select durable.protect_frozen('public.agent_runs', 'status')")


@pytest.mark.parametrize("name", ["_000_first", "zzz_last"])
@pytest.mark.parametrize(
    ("guard", "constraint", "sqlstate", "change"),
    [(ONCE, "_200_write_once", "23W02", "tools_executed := false"), (FROZEN, "_300_frozen", "23W03", "id := 9")],
)
def test_a_trigger_of_the_tables_owner_can_not_slip_a_change_past_the_guard(
    team: Team, *, guard: str, constraint: str, sqlstate: str, change: str, name: str
) -> None:
    team.do(
        "update public.agent_runs set tools_executed = true",
        "create or replace function public.sneak() returns trigger language plpgsql as"
        f" $$begin new.{change}; return new; end$$",
        f"create trigger {name} before update on public.agent_runs for each row execute function public.sneak()",
        guard,
    )
    # In replica mode the trigger that sneaks would not fire.
    refuse(team, sqlstate, constraint, "update public.agent_runs set status = 'x'", replica_too=False)
    team.do("drop function public.sneak() cascade")


def test_a_partitioned_table_is_guarded_in_its_partitions(team: Team) -> None:
    team.do(
        "create table public.parts (id integer, kind text) partition by list (kind)",
        "create table public.part_a partition of public.parts for values in ('a')",
        "select durable.protect_append_only('public.parts')",
        "select durable.protect_frozen('public.parts', 'id')",
        "insert into public.parts values (1, 'a')",
    )
    for statement in ("update public.part_a set id = 2", "delete from public.parts", "truncate public.parts"):
        with refused("23W01"), team.connect() as connection:
            connection.execute(statement.encode())
    team.do("drop table public.parts")


def test_who_does_not_own_the_table_puts_no_guard_on_it(team: Team) -> None:
    other = f"durable_test_other_{PROCESS}"
    for guard in GUARDS:
        with refused("42501"), team.db.superuser() as root:
            root.execute(f"create role {other}; grant usage on schema durable, public to {other}".encode())
            root.execute(
                f"grant execute on all functions in schema durable to {other}; set local role {other}".encode()
            )
            root.execute(guard.encode())
    assert triggers(team) == []


def test_no_front_role_may_use_the_guards(team: Team) -> None:
    for guard in GUARDS:
        with refused("42501"), team.db.as_app(None, None) as app:
            app.execute(guard.encode())
    with team.db.superuser() as root:
        for table in ("events", "sessions"):
            assert value(root, f"select has_table_privilege('durable_app', 'durable.{table}', 'trigger')") is False
