"""Bootstrap by a login that is no superuser, and logins that get a front role: on a cluster of our own."""

import re
import threading
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from durable_pg import migrate
from durable_pg.migrate import catalog, roles
from tests.migrations import support
from tests.support.harness import Database, one, value
from tests.support.servers import ROLES, Server

MODERN = 16


def add_login(server: Server, name: str, attributes: str = "") -> None:
    with server.connect() as root:
        root.execute(f"create role {name} login {attributes}".encode())


@pytest.fixture
def database(empty_server: Server) -> Iterator[Database]:
    """A database of `mig`, which is what a provider's admin is: CREATEROLE and CREATEDB, and no superuser."""
    add_login(empty_server, "mig", "createrole createdb")
    with support.new_database(empty_server) as found:
        yield found


def run(server: Server, statements: list[str], database: str) -> None:
    with server.connect(database) as root:
        for statement in statements:
            root.execute(statement.encode())


def upgrade(database: Database, **logins: str) -> migrate.Report:
    return migrate.upgrade(database.url("mig"), logins=logins)


def test_the_first_run_makes_the_roles_and_the_next_ones_change_nothing(database: Database) -> None:
    for _ in range(3):
        upgrade(database)
        facts = support.role_facts(database.server)
        assert [fact[0] for fact in facts] == sorted(ROLES)
        assert facts == support.role_facts(database.server)
    assert catalog.check(database.url("mig")) == []


def test_roles_made_by_someone_else_are_taken_as_they_are(database: Database) -> None:
    with database.superuser() as root:
        for role in ROLES:
            root.execute(sql.SQL("create role {}").format(sql.Identifier(role)))
        root.execute("grant durable_owner, durable_engine, durable_steward, durable_janitor to mig")
    before = support.role_facts(database.server)
    upgrade(database)
    assert support.role_facts(database.server) == before
    assert catalog.check(database.url("mig")) == []


def test_without_createrole_it_prints_what_a_dba_must_run_and_after_that_works(database: Database) -> None:
    run(database.server, ["alter role mig nocreaterole"], "postgres")
    done = support.durable_pg("upgrade", "--url", database.url("mig"))
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert sum(line.startswith("create role") for line in done.stdout.splitlines()) == 8

    run(database.server, done.stdout.splitlines(), database.name)
    done = support.durable_pg("upgrade", "--url", database.url("mig"))
    assert (done.returncode, done.stderr) == (0, "")
    assert catalog.check(database.url("mig")) == []


def test_once_made_the_migration_login_needs_createrole_no_more(database: Database) -> None:
    upgrade(database)
    run(database.server, ["alter role mig nocreaterole"], "postgres")
    assert upgrade(database).steps == 0


def test_a_role_that_is_more_than_it_may_be_is_named(database: Database) -> None:
    with database.superuser() as root:
        root.execute("create role durable_app login bypassrls")
        root.execute("create role durable_engine in role pg_write_all_data")
    with pytest.raises(migrate.DbaMustAct) as caught:
        upgrade(database)
    assert "alter role durable_app nologin nobypassrls;" in caught.value.statements
    assert "revoke pg_write_all_data from durable_engine;" in caught.value.statements


def test_several_databases_of_one_server_are_migrated_at_once(empty_server: Server) -> None:
    add_login(empty_server, "mig", "createrole")
    faults: list[Exception] = []

    def job(database: Database) -> None:
        try:
            upgrade(database)
        except Exception as error:  # noqa: BLE001
            faults.append(error)

    with (
        support.new_database(empty_server) as one,
        support.new_database(empty_server) as two,
        support.new_database(empty_server) as three,
    ):
        threads = [threading.Thread(target=job, args=(database,)) for database in (one, two, three)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == []
        for database in (one, two, three):
            assert catalog.check(database.url("mig")) == []


def test_a_server_that_gives_new_roles_to_their_maker_is_not_fooled(database: Database) -> None:
    if database.server.major < MODERN:
        pytest.skip("createrole_self_grant exists from 16 on")
    run(database.server, ["alter role mig set createrole_self_grant = 'set, inherit'"], "postgres")
    upgrade(database)
    assert catalog.check(database.url("mig")) == []


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_the_wrong_encoding_is_refused_before_anything_is_made(empty_server: Server, encoding: str) -> None:
    add_login(empty_server, "mig", "createrole")
    name = f"durable_test_{encoding.lower()}"
    with empty_server.connect() as root:
        root.execute(f"create database {name} owner mig template template0 encoding '{encoding}' locale 'C'".encode())
    url = empty_server.url(name, "mig")
    with pytest.raises(migrate.DatabaseUnfit, match="needs a database in UTF8"):
        migrate.upgrade(url)
    assert support.role_facts(empty_server) == []
    done = support.durable_pg("upgrade", "--url", url)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    assert support.durable_pg("current", "--url", url).stdout.startswith("none")


def test_a_runtime_login_never_migrates_and_no_dba_is_asked(database: Database) -> None:
    for kind in roles.FRONT:
        add_login(database.server, kind)
    add_login(database.server, "nightly", "createrole")
    upgrade(database, **{kind: kind for kind in roles.FRONT})
    assert migrate.current(database.url("auditor")) == migrate.head()
    run(database.server, ["create role team", "grant durable_app to team", "grant team to nightly"], "postgres")
    for login, held in [*((kind, roles.FRONT[kind]) for kind in roles.FRONT), ("nightly", "durable_app")]:
        words = rf"^{login} is a runtime login \({held}\); it must never migrate"
        with pytest.raises(migrate.LoginIsRuntime, match=words) as caught:
            migrate.upgrade(database.url(login))
        assert "migration login" in caught.value.hint
        with pytest.raises(migrate.LoginIsRuntime, match=words):
            migrate.downgrade(database.url(login), to="base")
        if held != "durable_auditor":
            with pytest.raises(migrate.LoginIsRuntime, match=f"^{login} is a runtime login .*may not read"):
                migrate.current(database.url(login))


def test_a_second_login_on_a_server_gets_all_statements_in_one_go(database: Database) -> None:
    upgrade(database)
    add_login(database.server, "mig2", "createrole")
    add_login(database.server, "app")
    add_login(database.server, "auditor")
    with support.new_database(database.server, "mig2") as second:
        arguments = ("upgrade", "--url", second.url("mig2"), "--app-login", "app", "--auditor-login", "auditor")
        done = support.durable_pg(*arguments)
        if database.server.major >= MODERN:
            assert done.returncode == 3, done.stderr
            statements = done.stdout.splitlines()
            assert [line.split()[1] for line in statements] == [
                *(roles.OWNER, *roles.BACK, "durable_app", "durable_auditor")
            ]
            run(database.server, statements, second.name)
            done = support.durable_pg(*arguments)
        assert done.returncode == 0, done.stderr
        assert catalog.check(second.url("mig2")) == []


def test_without_createrole_the_statements_end_with_the_grants_asked_for(database: Database) -> None:
    run(database.server, ["alter role mig nocreaterole", "create role app login"], "postgres")
    with pytest.raises(migrate.DbaMustAct) as caught:
        upgrade(database, app="app")
    assert caught.value.statements[-1].startswith("grant durable_app to app")
    run(database.server, list(caught.value.statements), database.name)
    upgrade(database, app="app")
    assert catalog.check(database.url("mig")) == []


def test_a_superuser_is_warned(database: Database) -> None:
    report = migrate.upgrade(database.server.url(database.name))
    assert "postgres is a superuser" in report.warnings[0]
    assert catalog.check(database.server.url(database.name)) == []
    # The roles are the superuser's now; a login of its own is told what it lacks, and gets no warning.
    run(database.server, ["grant durable_owner, durable_engine, durable_steward, durable_janitor to mig"], "postgres")
    assert upgrade(database).warnings == ()


def test_logins_get_their_front_role_and_a_second_run_grants_nothing(database: Database) -> None:
    for kind in roles.FRONT:
        add_login(database.server, kind)
    logins = {kind: kind for kind in roles.FRONT}
    assert len(upgrade(database, **logins).grants) == 4
    assert upgrade(database, **logins).grants == ()
    assert catalog.check(database.url("mig")) == []
    with database.as_app() as app:
        assert one(app, "select durable.open_session(app_name => 'support')")


@pytest.mark.parametrize(
    ("setup", "login", "words"),
    [
        ([], "nobody_here", "there is no login"),
        (["create role big superuser login"], "big", "is a superuser"),
        (["create role big bypassrls login"], "big", "bypasses row-level security"),
        (["create role team"], "team", "can't log in"),
        ([], "mig", "already reaches"),
        ([], "durable_operator", "one of durable_pg's own roles"),
        (["create role two login", "grant durable_operator to two"], "two", "already reaches durable_operator"),
        (
            ["create role two login", "create role team", "grant durable_auditor to team", "grant team to two"],
            "two",
            "already reaches durable_auditor",
        ),
    ],
)
def test_a_login_that_would_be_more_than_a_front_role_is_refused(
    database: Database, setup: list[str], login: str, words: str
) -> None:
    upgrade(database)
    run(database.server, setup, "postgres")
    before = support.role_facts(database.server)
    with pytest.raises(migrate.LoginRefused, match=words) as caught:
        upgrade(database, app=login)
    # What is proposed may be piped into psql: it makes or frees this login, never another with a made-up name.
    assert caught.value.hint or caught.value.statements
    assert all(login in re.findall(r"\w+", statement) for statement in caught.value.statements)
    assert support.role_facts(database.server) == before


def test_one_login_for_two_front_roles_is_refused(database: Database) -> None:
    add_login(database.server, "twofold")
    with pytest.raises(migrate.LoginRefused, match="twofold can't be both app and operator"):
        upgrade(database, app="twofold", operator="twofold")
    with psycopg.connect(database.server.url("postgres")) as root:
        assert root.execute("select pg_has_role('twofold', 'durable_app', 'member')").fetchone() == (False,)


def test_a_noinherit_login_is_refused_where_the_grant_can_not_say_inherit(database: Database) -> None:
    add_login(database.server, "app", "noinherit")
    if database.server.major >= MODERN:
        upgrade(database, app="app")
        with database.as_app() as app:
            assert one(app, "select durable.open_session(app_name => 'support')")
        return
    with pytest.raises(migrate.LoginRefused) as caught:
        upgrade(database, app="app")
    assert caught.value.statements == ("alter role app inherit;",)


def test_a_migration_login_that_may_not_grant_prints_the_grant(database: Database) -> None:
    upgrade(database)
    with database.superuser() as root:
        root.execute("create role app login")
        root.execute("create role mig2 login")
        root.execute("grant durable_owner, durable_engine, durable_steward, durable_janitor to mig2")
    done = support.durable_pg("upgrade", "--url", database.url("mig2"), "--app-login", "app")
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith("grant durable_app to app")
    run(database.server, done.stdout.splitlines(), database.name)
    done = support.durable_pg("upgrade", "--url", database.url("mig2"), "--app-login", "app")
    assert done.returncode == 0, done.stderr


def test_bootstrap_and_grants_work_on_a_connection_of_the_caller(database: Database) -> None:
    add_login(database.server, "app")
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(database.url("mig")), poolclass=NullPool
    )
    with engine.begin() as connection:
        roles.bootstrap(connection)
        roles.bootstrap(connection)
        assert roles.grant_logins(connection, app="app")
        assert roles.grant_logins(connection, app="app") == []
    with database.superuser() as root:
        assert (
            value(root, "select nspowner::regrole::text from pg_namespace where nspname = 'durable'") == "durable_owner"
        )
