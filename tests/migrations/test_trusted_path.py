"""A function that an application made where the migration login looks is never called by a migration."""

import pytest
from sqlalchemy import create_engine, text

from durable_pg import migrate
from durable_pg.migrate import catalog
from durable_pg.migrate.paths import sql_dir
from tests.migrations.support import psql
from tests.support.harness import Database

# Each would win over the one in pg_catalog, which takes "any", polymorphic or variadic arguments.
TRAPS = (
    "cardinality(text[]) returns integer",
    "concat_ws(text, text, text, text, text, text, text) returns text",
    "format(text, text) returns text",
    "format(text, name) returns text",
    "format(text, name, name) returns text",
    "array_to_string(text[], text) returns text",
    "quote_ident(name) returns text",
    "pg_has_role(name, text, text) returns boolean",
)


@pytest.fixture
def trapped(db: Database) -> Database:
    with db.superuser() as root:
        root.execute("grant create on schema public to app")
    with db.connect("app", autocommit=True) as app:
        for trap in TRAPS:
            body = "begin raise exception 'trapped, as %', current_user; end"
            app.execute(f"create function public.{trap} language plpgsql as $$ {body} $$".encode())
    return db


def test_the_traps_spring_for_who_looks_in_public_first(trapped: Database) -> None:
    with trapped.connect("mig") as mig, pytest.raises(Exception, match="trapped, as mig"):
        mig.execute("select cardinality(array['a'])")


def test_an_upgrade_does_not_meet_them(trapped: Database) -> None:
    assert migrate.upgrade(trapped.url("mig"), logins={"app": "app"}).after == migrate.head()


def test_a_check_does_not_meet_them(trapped: Database) -> None:
    assert catalog.check(trapped.url("mig")) == []


def test_an_upgrade_on_a_connection_of_the_callers_does_not_meet_them(trapped: Database) -> None:
    engine = create_engine(trapped.url("mig").replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text("set local search_path = public, pg_catalog"))
        migrate.upgrade(connection)
        path = connection.execute(text("show search_path")).scalar()
    engine.dispose()
    assert path == "public, pg_catalog"


@pytest.mark.parametrize("path", ['"$user", public', "public, pg_catalog"])
def test_the_bootstrap_by_psql_does_not_meet_them(trapped: Database, path: str) -> None:
    with trapped.superuser() as root:
        root.execute(f"alter database {trapped.name} set search_path = {path}".encode())
    done = psql(
        trapped.url("mig"), trapped.server.major, "-1", "-v", "ON_ERROR_STOP=1", "-f", str(sql_dir() / "roles.sql")
    )
    assert done.returncode == 0, done.stderr
