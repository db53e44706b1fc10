"""The harness itself: its logins are as weak as it says, and `refused` can fail."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.support.harness import Database, connections, one, refused, rows, value, wait_until_blocked
from tests.support.servers import LOGINS, ROLES


@pytest.mark.parametrize("login", LOGINS)
def test_no_login_is_a_superuser(db: Database, login: str) -> None:
    with db.connect(login) as connection:
        held = one(connection, "select * from pg_roles where rolname = current_user")
    assert not held["rolsuper"]
    assert not held["rolbypassrls"]
    assert held["rolcreaterole"] == (login == "mig")


def test_the_migration_login_owns_the_database(db: Database, empty_database: Database) -> None:
    for database in (db, empty_database):
        with database.superuser() as root:
            owner = value(root, "select datdba::regrole::text from pg_database where datname = current_database()")
        assert owner == "mig"


@pytest.mark.parametrize("login", [login for login in LOGINS if login != "mig"])
def test_a_runtime_login_holds_one_front_role_and_none_behind(db: Database, login: str) -> None:
    with db.superuser() as root:
        held = [role for role in ROLES if value(root, "select pg_has_role(%s, %s, 'member')", login, role)]
    assert held == [f"durable_{login.rstrip('2')}"]


def test_each_block_acts_as_its_role(db: Database) -> None:
    blocks = {
        "app": db.as_app(),
        "app2": db.as_app(login="app2"),
        "operator": db.as_operator(),
        "maintainer": db.as_maintainer(),
        "auditor": db.as_auditor(),
        "durable_owner": db.as_owner(),
        "durable_engine": db.as_engine(),
        "durable_steward": db.as_steward(),
        "durable_janitor": db.as_janitor(),
    }
    for role, block in blocks.items():
        with block as connection:
            assert value(connection, "select current_user") == role


@pytest.mark.parametrize("role", ["app", "engine"])
def test_a_block_carries_its_identity(db: Database, role: str) -> None:
    with db.as_app("T2", "U2") if role == "app" else db.as_engine("T2", "U2") as connection:
        found = one(connection, "select durable.current_tenant() as tenant, durable.current_user_id() as person")
    assert found == {"tenant": "T2", "person": "U2"}


def test_clones_are_independent(db: Database) -> None:
    copy = db.clone()
    try:
        with copy.superuser() as root:
            root.execute("create table public.only_here ()")
        with db.superuser() as root:
            assert value(root, "select to_regclass('public.only_here')") is None
    finally:
        copy.drop()


def test_a_block_is_one_transaction(empty_database: Database) -> None:
    with empty_database.connect("mig") as kept:
        kept.execute("create table kept ()")
    with pytest.raises(ZeroDivisionError), empty_database.connect("mig") as lost:
        lost.execute("create table lost ()")
        raise ZeroDivisionError
    with empty_database.superuser() as root:
        found = one(root, "select to_regclass('kept') is not null as kept, to_regclass('lost') is not null as lost")
    assert found == {"kept": True, "lost": False}


def test_rows_reads_past_row_level_security(db: Database) -> None:
    assert len(rows(db, "alembic_version")) == 1


def test_refused_accepts_the_refusal_it_names(empty_database: Database) -> None:
    with (
        refused("23514", constraint="is_positive", match="violates check") as refusal,
        empty_database.connect("mig") as connection,
    ):
        connection.execute("create temp table numbers (n integer constraint is_positive check (n > 0))")
        connection.execute("insert into numbers values (0)")
    assert refusal.diag.table_name == "numbers"


def test_refused_fails_when_nothing_is_refused(empty_database: Database) -> None:
    with (
        pytest.raises(pytest.fail.Exception, match="nothing was refused"),
        refused("23514"),
        empty_database.connect("mig"),
    ):
        pass


@pytest.mark.parametrize(
    ("expected", "complaint"),
    [
        ({"sqlstate": "23505"}, "expected SQLSTATE 23505, refused with 22012"),
        ({"sqlstate": "22012", "constraint": "effect_once"}, "expected effect_once to refuse"),
        ({"sqlstate": "22012", "match": "tenant"}, "expected a refusal that matches 'tenant'"),
    ],
)
def test_refused_fails_on_another_refusal(empty_database: Database, expected: dict[str, str], complaint: str) -> None:
    with (
        pytest.raises(AssertionError, match=complaint),
        refused(**expected),
        empty_database.connect("mig") as connection,
    ):
        connection.execute("select 1 / 0")


def test_refused_lets_other_errors_through() -> None:
    with pytest.raises(ZeroDivisionError), refused("22012"):
        raise ZeroDivisionError


def test_a_refusal_by_the_client_is_none_of_the_server(empty_database: Database) -> None:
    with (
        pytest.raises(AssertionError, match="refused with None"),
        refused("22P02"),
        empty_database.connect("mig") as connection,
    ):
        connection.execute("select %s", ())


def test_waiting_ends_when_a_lock_is_met(empty_database: Database) -> None:
    lock = "select pg_advisory_xact_lock(1)"
    with connections(empty_database, 2, "mig") as (first, second), ThreadPoolExecutor() as threads:
        first.execute(lock)
        waiting = threads.submit(second.execute, lock)
        wait_until_blocked(empty_database, second, by=first)
        assert not waiting.done()
        first.rollback()
        waiting.result(timeout=10)


def test_waiting_fails_when_nobody_blocks(empty_database: Database) -> None:
    with (
        connections(empty_database, 1, "mig") as (idle,),
        pytest.raises(pytest.fail.Exception, match="was not blocked"),
    ):
        wait_until_blocked(empty_database, idle, seconds=0.1)


@pytest.mark.pg("< 14")
def test_a_test_for_another_postgres_is_skipped(db: Database) -> None:
    raise AssertionError(db.name)


@pytest.mark.pg(">= 14")
def test_a_test_for_this_postgres_runs(db: Database) -> None:
    with db.connect("mig") as connection:
        assert isinstance(connection, psycopg.Connection)
