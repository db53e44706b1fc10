"""sql/, the frozen migrations and the expected catalog say the same; and `check` notices when a database doesn't."""

import json
import re
from collections.abc import Callable, Iterator

import psycopg
import pytest

from durable_pg import migrate
from durable_pg.migrate import catalog
from tests.migrations import support
from tests.support.cli import ROOT
from tests.support.harness import Database
from tests.support.servers import Server
from tools.frozen_tree import Tree

TREE = Tree(ROOT)


def test_sql_is_frozen() -> None:
    assert TREE.differences() == {}


def test_the_chain_is_whole() -> None:
    assert TREE.chain_faults() == []


def test_every_sql_file_is_in_the_manifest_once() -> None:
    listed = [path.removeprefix("sql/") for path in TREE.manifest()]
    present = {str(path.relative_to(TREE.sql)) for path in TREE.sql.rglob("*.sql")} - {"roles.sql", "schema_open.sql"}
    assert sorted(set(listed) - {"schema_open.sql"}) == sorted(present)


def apply_tree(db: Database) -> None:
    """Run sql/ as it is now, in the order of the manifest, as the migration login would."""
    with psycopg.connect(db.url("mig")) as connection:
        connection.execute((TREE.sql / "roles.sql").read_bytes())
    with psycopg.connect(db.url("mig")) as connection:
        connection.execute("set local search_path = pg_catalog, pg_temp; set local client_min_messages = warning")
        for text in TREE.manifest().values():
            connection.execute(text.encode())
        connection.execute("set local role durable_owner")
        connection.execute(f"insert into durable.alembic_version values ('{migrate.head()}')".encode())


def test_replaying_the_migrations_gives_what_sql_gives(db: Database, empty_database: Database) -> None:
    apply_tree(empty_database)
    assert catalog.compare(catalog.read(empty_database.url("mig")), catalog.read(db.url("mig"))) == []
    # Lines sorted: statements that alter run in another order. Owners, privileges and comments are in the dump.
    assert sorted(support.dump(empty_database).splitlines()) == sorted(support.dump(db).splitlines())


def test_the_expected_catalog_is_that_of_a_migrated_database(db: Database) -> None:
    assert catalog.as_json(catalog.read(db.url("mig"))) == catalog.as_json(catalog.expected())
    text = (ROOT / "durable_pg" / "migrate" / "catalog" / "expected_catalog.json").read_text()
    assert text == catalog.as_json(catalog.Fact(*row) for row in json.loads(text))


def test_the_auditor_sees_the_same_catalog(db: Database) -> None:
    assert catalog.read(db.url("auditor")) == catalog.read(db.url("mig"))


TAMPERING = {
    "trigger": (
        "alter table durable.events enable trigger _100_append_only",
        r"trigger events\._100.*expected always, found origin",
    ),
    "no trigger": ("drop trigger _100_append_only on durable.events", r"missing trigger events\._100_append_only"),
    "force": ("alter table durable.runs no force row level security", "table runs: row security forced"),
    "policy": ("create policy wide on durable.runs for select to durable_app using (true)", r"extra policy runs\.wide"),
    "column": ("alter table durable.runs add column more text", r"extra column runs\.more"),
    "not null": ("alter table durable.runs alter column status drop not null", r"column runs\.status: not null"),
    "index": ("create index more on durable.runs (status)", "extra index more"),
    "check": ("alter table durable.runs add constraint more check (true) not valid", r"extra constraint runs\.more"),
    "table": ("create table durable.more (n integer)", "extra table more"),
    "type": ("create type durable.mood as enum ('good')", "extra type mood"),
    "operator": (
        "create operator durable.=== (leftarg = integer, rightarg = integer, function = int4eq)",
        "extra object operator",
    ),
    "function": ("create function durable.more() returns integer language sql return 1", r"extra function more\(\)"),
    "body": (
        "create or replace function durable.identity_missing() returns text language plpgsql as 'begin return 1; end'",
        r"function identity_missing\(\): source md5",
    ),
    "grant": ("grant insert on durable.runs to durable_app", "extra grant runs: durable_app insert"),
    "column grant": (
        "grant update (status) on durable.runs to durable_app",
        r"extra grant runs\.status: durable_app update",
    ),
    "public": ("grant select on durable.runs to public", "extra grant runs: public select"),
    "stranger": ("grant usage on schema durable to operator", "extra schema grant durable: operator usage"),
    "execute": (
        "revoke execute on function durable.act_as(text, text) from durable_app",
        r"missing grant act_as\(text,text\): durable_app execute",
    ),
    "owner": ("alter table durable.runs owner to mig", "table runs: owner: expected durable_owner, found mig"),
    "comment": ("comment on table durable.runs is 'other'", "table runs: comment"),
    "rule": ("create rule more as on insert to durable.runs do instead nothing", r"extra rule runs\.more"),
    "default": (
        "alter default privileges for role durable_owner grant select on tables to public",
        "extra default grant durable_owner tables: public select",
    ),
    "setting": (
        "alter function durable.act_as(text, text) reset search_path",
        r"function act_as\(text,text\): settings",
    ),
    "replica": ("alter table durable.runs replica identity full", "table runs: replica identity"),
    "unlogged": ("alter table durable.audit_log set unlogged", "table audit_log: persistence"),
}


@pytest.mark.parametrize("name", TAMPERING)
def test_check_notices(db: Database, name: str) -> None:
    statement, expected = TAMPERING[name]
    assert catalog.check(db.url("auditor")) == []
    with db.superuser() as root:
        root.execute(statement.encode())

    found = [str(difference) for difference in catalog.check(db.url("auditor"))]
    assert any(re.search(expected, line) for line in found), found
    assert len(found) <= 12, found


def test_check_notices_a_changed_transition(db: Database) -> None:
    with db.superuser() as root:
        root.execute("set local session_replication_role = replica")
        root.execute("alter table durable.transitions disable trigger user")
        root.execute("insert into durable.transitions values ('run', 'failed', 'running', 'again')")
        root.execute("alter table durable.transitions enable trigger user")
    found = [str(difference) for difference in catalog.check(db.url("mig"))]
    assert "extra transition run: failed -> running again" in found


def test_check_prints_the_differences_and_exits_1(db: Database) -> None:
    with db.superuser() as root:
        root.execute("grant delete on durable.events to durable_operator")
    done = support.durable_pg("check", "--url", db.url("auditor"))
    assert done.returncode == 1
    assert "extra grant events: durable_operator delete granted" in done.stdout
    done = support.durable_pg("check", "--url", db.url("auditor"), "--json")
    assert done.returncode == 1
    (difference,) = json.loads(done.stdout)["differences"]
    assert (difference["what"], difference["object"]) == ("extra", "events")


def test_an_empty_database_lacks_everything(empty_database: Database) -> None:
    missing = [str(difference) for difference in catalog.check(empty_database.url("mig"))]
    assert "missing table events" in missing


@pytest.fixture
def team(db: Database) -> Iterator[str]:
    """A role of its own whose name needs quotes, granted what guards on its tables take."""
    name = f"Team {db.name}"
    quoted, functions = f'"{name}"', ", ".join(f"durable.{function}" for function in catalog.GUARD_FUNCTIONS)
    with db.superuser() as root:
        root.execute(f"create role {quoted}".encode())
        root.execute(f"grant usage on schema durable to {quoted}".encode())
        root.execute(f"grant execute on function {functions} to {quoted}".encode())
    yield name
    with db.superuser() as root:
        root.execute(f"drop owned by {quoted}".encode())
        root.execute(f"drop role {quoted}".encode())


def test_a_team_that_guards_its_own_tables_is_accepted_by_name(db: Database, team: str) -> None:
    url = db.url("mig")
    assert len(catalog.check(url)) == len(catalog.GUARD_FUNCTIONS) + 1
    assert catalog.check(url, guard_owners=[team]) == []
    assert len(catalog.check(url, guard_owners=["another"])) == len(catalog.GUARD_FUNCTIONS) + 1
    done = support.durable_pg("check", "--url", url, "--guard-owner", "another", "--guard-owner", team)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "grant",
    [
        "grant create on schema durable to {}",
        "grant execute on function durable.protect_read_only(regclass) to {}",
        "grant execute on function durable.refuse_rewrite() to {} with grant option",
        "grant usage on schema durable to {} with grant option",
        "grant select on durable.events to {}",
    ],
)
def test_anything_else_of_that_team_is_still_a_difference(db: Database, team: str, grant: str) -> None:
    with db.superuser() as root:
        root.execute(grant.format(f'"{team}"').encode())
    assert len(catalog.check(db.url("mig"), guard_owners=[team])) == 1


@pytest.mark.parametrize("role", ["durable_app", "durable_owner", "public", ""])
def test_a_role_of_ours_and_public_are_no_guard_owners(db: Database, role: str) -> None:
    with pytest.raises(migrate.BadRequest):
        catalog.check(db.url("mig"), guard_owners=[role])


def in_two_roles(database: Database) -> list[str]:
    with database.superuser() as root:
        root.execute("create role twofold login")
        root.execute("grant durable_app, durable_operator to twofold")
    return ["extra login twofold: reaches durable_app, durable_operator"]


def beyond_rls(database: Database) -> list[str]:
    with database.superuser() as root:
        root.execute("create role beyond login bypassrls")
        root.execute("grant durable_app to beyond")
    return ["extra login beyond: reaches durable_app"]


def stronger(database: Database) -> list[str]:
    with database.superuser() as root:
        root.execute("alter role durable_app login bypassrls")
        root.execute("grant pg_write_all_data to durable_engine")
        root.execute("alter role durable_app set row_security = off")
    return [
        "changed role durable_app: attributes: expected nologin, found login, bypassrls",
        "changed role durable_app: settings: expected nothing, found row_security=off",
        "extra membership durable_engine: member of pg_write_all_data true",
    ]


@pytest.mark.parametrize("spoil", [in_two_roles, beyond_rls, stronger])
def test_check_notices_roles(empty_server: Server, spoil: Callable[[Database], list[str]]) -> None:
    with empty_server.connect() as root:
        root.execute("create role mig login createrole")
    with support.new_database(empty_server) as database:
        migrate.upgrade(database.url("mig"))
        assert catalog.check(database.url("mig")) == []
        expected = spoil(database)
        assert set(expected) <= {str(difference) for difference in catalog.check(database.url("mig"))}
