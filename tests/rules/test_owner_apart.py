"""Rule owner-apart: no runtime role owns, may become the owner of, or may alter anything."""

import psycopg
import pytest

from tests.rules.roles import BACK, DATA, FRONT, acting
from tests.rules.world import World, unchanged
from tests.support.harness import Database, refused, value
from tests.support.servers import LOGINS

RUNTIME_LOGINS = [login for login in LOGINS if login != "mig"]
BEHIND = ("durable_owner", *(f"durable_{role}" for role in BACK))
OURS = (*BEHIND, *(f"durable_{role}" for role in FRONT))

# What would take a guard away or put something before it. Nobody at run time may do any of it.
ALTERATIONS = [
    "alter table durable.{t} disable trigger all",
    "alter table durable.{t} disable trigger user",
    "alter table durable.{t} enable trigger user",
    "alter table durable.{t} disable row level security",
    "alter table durable.{t} no force row level security",
    "alter table durable.{t} owner to current_user",
    "alter table durable.{t} add column x integer",
    "alter table durable.{t} drop column tenant_id cascade",
    "alter table durable.{t} alter column tenant_id drop not null",
    "alter table durable.{t} rename to gone",
    "alter table durable.{t} set schema public",
    "alter table durable.{t} replica identity nothing",
    "drop table durable.{t} cascade",
    "create rule silent as on insert to durable.{t} do instead nothing",
    "create trigger _0 before update on durable.{t} for each row execute function suppress_redundant_updates_trigger()",
    "create policy all_of_it on durable.{t} using (true)",
    "drop policy refuse_owner on durable.{t}",
    "create index on durable.{t} (tenant_id)",
    "create statistics durable.s on tenant_id, ctid from durable.{t}",
    "lock table durable.{t} in share mode",
    "lock table durable.{t} in access exclusive mode",
    "comment on table durable.{t} is ''",
    "create table pg_temp.child () inherits (durable.{t})",
    "cluster durable.{t}",
]
WIDER = [
    "create table durable.mine (x integer)",
    "create function durable.mine() returns integer language sql return 1",
    "create or replace function durable.current_tenant() returns text language sql return 'T2'",
    "alter function durable.current_tenant() set search_path = public",
    "alter function durable.append_event security invoker",
    "alter function durable.act_as(text, text) owner to current_user",
    "drop function durable.refuse_rewrite() cascade",
    "grant execute on function durable.put_column_guard(regclass, text, text, text, text[]) to public",
    "select durable.protect_append_only('durable.runs')",
    "select durable.protect_rows('durable.runs')",
    "drop schema durable cascade",
    "alter schema durable rename to gone",
    "alter schema durable owner to current_user",
    "alter domain durable.identifier drop constraint identifier_is_1_to_512_unpadded",
    "alter type durable.session_row add attribute x integer",
    "set session authorization durable_owner",
    "set session_replication_role = replica",
    "create role another",
    "grant durable_owner to current_user",
    "grant durable_engine to current_user",
    "alter role durable_engine login",
    "alter role current_user bypassrls",
    "alter role current_user superuser",
    "alter default privileges for role durable_owner grant execute on functions to public",
    "create event trigger e on ddl_command_start execute function durable.refuse_rewrite()",
    "create publication p for table durable.events",
]


@pytest.mark.parametrize("role", [*FRONT, *BACK])
def test_no_role_alters_a_table(db: Database, role: str) -> None:
    World.of(db)
    with unchanged(db), acting(db, role) as connection:
        for table in (*DATA, "transitions"):
            for alteration in ALTERATIONS:
                if (table, alteration) != ("transitions", "drop policy refuse_owner on durable.{t}"):
                    with refused("42501"), connection.transaction():
                        connection.execute(alteration.format(t=table).encode())


# Back roles own the functions that write, and nothing else. They can't make new ones: see the least-privilege matrix.
@pytest.mark.parametrize("role", [*FRONT, "steward", "janitor"])
def test_no_role_alters_anything_else(db: Database, role: str) -> None:
    World.of(db)
    with unchanged(db), acting(db, role) as connection:
        for statement in WIDER:
            with refused("42501"), connection.transaction():
                connection.execute(statement.encode())


@pytest.mark.parametrize("role", [*FRONT, *BACK])
def test_no_role_gives_a_privilege_on_or_takes_one(db: Database, role: str) -> None:
    """Postgres only warns who holds the privilege without its grant option."""
    granted = "select relname, relacl::text from pg_class where relnamespace = 'durable'::regnamespace order by relname"
    with db.superuser() as root:
        before = root.execute(granted).fetchall()
    with acting(db, role) as connection:
        for table in (*DATA, "transitions"):
            for statement in (
                f"grant all on durable.{table} to public",
                f"grant select on durable.{table} to durable_maintainer with grant option",
                f"revoke all on durable.{table} from durable_app",
            ):
                try:
                    with connection.transaction():
                        connection.execute(statement.encode())
                except psycopg.errors.InsufficientPrivilege:
                    continue
    with db.superuser() as root:
        assert root.execute(granted).fetchall() == before


@pytest.mark.parametrize("login", RUNTIME_LOGINS)
@pytest.mark.parametrize("role", BEHIND)
def test_no_runtime_login_becomes_owner_or_back_role(db: Database, login: str, role: str) -> None:
    with db.connect(login) as connection:
        assert not value(connection, "select pg_has_role(%s, 'member')", role)
        with refused("42501"), connection.transaction():
            connection.execute(f"set local role {role}".encode())


@pytest.mark.parametrize("login", RUNTIME_LOGINS)
def test_a_runtime_login_owns_nothing(db: Database, login: str) -> None:
    with db.superuser() as root:
        owned = value(
            root,
            """
            select count(*) from pg_shdepend as d
            where d.deptype = 'o' and d.refobjid = %s::regrole
                and d.dbid = (select oid from pg_database where datname = current_database())
            """,
            login,
        )
    assert owned == 0


def test_a_runtime_role_owns_nothing(db: Database) -> None:
    with db.superuser() as root:
        owned = root.execute(
            """
            select d.refobjid::regrole::text as role, d.classid::regclass::text as kind, d.objid
            from pg_shdepend as d
            where d.deptype = 'o' and d.refobjid::regrole::text = any (%s)
            """,
            ([f"durable_{role}" for role in FRONT],),
        ).fetchall()
    assert owned == []


def role_faults(db: Database) -> list[str]:
    """What is wrong with the attributes and memberships of our roles."""
    with db.superuser() as root:
        found = root.execute(
            """
            select r.rolname || ' may ' || a.name as fault
            from pg_roles as r
            cross join lateral (
                values ('log in', rolcanlogin), ('do anything', rolsuper), ('bypass row security', rolbypassrls),
                    ('create roles', rolcreaterole), ('create databases', rolcreatedb), ('replicate', rolreplication)
            ) as a (name, held)
            where a.held and r.rolname = any (%(ours)s)
            union all
            select m.member::regrole || ' is in ' || m.roleid::regrole
            from pg_auth_members as m
            where m.member::regrole::text = any (%(ours)s)
            union all
            select r.rolname || ' is missing'
            from unnest(%(ours)s::text[]) as r (rolname)
            where r.rolname not in (select rolname from pg_roles)
            order by 1
            """,
            {"ours": list(OURS)},
        ).fetchall()
    return [row["fault"] for row in found]


def test_our_roles_have_no_attribute_and_are_members_of_nothing(db: Database) -> None:
    assert role_faults(db) == []
