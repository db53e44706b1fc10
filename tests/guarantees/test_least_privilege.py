"""Rule least-privilege: exactly the privileges of privileges.txt; PUBLIC and roles outside the five have none."""

import pytest

from tests.guarantees import _privileges
from tests.guarantees._roles import BACK, DATA, FRONT, acting
from tests.guarantees._world import World, unchanged
from tests.harness import Connection, Database, refused, value

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
        found = {fact.name for fact in _privileges.live(root)}
    expected = _privileges.expected()
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


@pytest.mark.parametrize("role", ["maintainer", *BACK[1:]])
def test_a_role_without_content_reads_no_table(db: Database, role: str) -> None:
    World.of(db)
    with acting(db, role) as connection:
        for table in DATA:
            with refused("42501"), connection.transaction():
                connection.execute(f"select * from durable.{table}".encode())


def test_the_app_reads_no_audit_row(db: Database) -> None:
    World.of(db)
    with refused("42501"), db.as_app() as app:
        app.execute("select * from durable.audit_log")


@pytest.mark.parametrize("role", ["operator", "maintainer", "auditor", "steward", "janitor"])
@pytest.mark.parametrize("function", ["open_session", "close_session", "append_event", "start_run", "settle_run"])
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
