"""check notices what stands around the schema and could lift a rule."""

import re

import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from durable_pg.migrate import catalog
from tests.support.harness import Database

PLANTED = {
    "a table that inherits": (
        ["create schema side", "create table side.evil () inherits (durable.events)"],
        r"extra outside table side.evil",
    ),
    "a function of a back role elsewhere": (
        [
            "create schema side",
            "create function side.f() returns integer language sql security definer as 'select 1'",
            "alter function side.f() owner to durable_engine",
        ],
        r"extra outside function side.f\(\)",
    ),
    "a view of the auditor elsewhere": (
        [
            "create schema side",
            "create view side.v as select content from durable.events",
            "alter view side.v owner to durable_auditor",
        ],
        r"extra outside view side.v",
    ),
    "an identity set for a database": (
        ["alter database {database} set durable.tenant_id = 'T1'"],
        r"extra outside setting durable.tenant_id=T1",
    ),
    "foreign keys switched off": (
        ["alter table durable.events disable trigger all"],
        r"extra outside foreign keys of durable.events",
    ),
    "a publication": (["create publication leak for table durable.events"], r"extra outside publication leak"),
}
# Roles belong to the whole server: these are looked at in the transaction that makes them, which is rolled back.
LOGINS = {
    "a login in a back role": (
        "grant durable_engine to {login}",
        r"extra login {login}: reaches behind durable_engine",
    ),
    "a login that makes roles": (
        "grant durable_app to {login}; alter role {login} createrole",
        r"extra login {login}: also createrole",
    ),
    "a login that writes all data": (
        "grant durable_app, pg_write_all_data to {login}",
        r"extra login {login}: also member of pg_write_all_data",
    ),
}


def found(db: Database) -> list[str]:
    return [str(difference) for difference in catalog.check(db.url("auditor"))]


@pytest.mark.parametrize("what", PLANTED)
def test_check_notices(db: Database, what: str) -> None:
    statements, expected = PLANTED[what]
    assert found(db) == []
    with db.superuser() as root:
        for statement in statements:
            root.execute(statement.format(database=db.name).encode())
    assert any(re.match(expected, line) for line in found(db)), found(db)


def found_with(db: Database, *statements: str) -> list[str]:
    engine = create_engine(db.server.url(db.name).replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool)
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
        differences = [str(difference) for difference in catalog.check(connection)]
        connection.rollback()
    return differences


@pytest.mark.parametrize("what", LOGINS)
def test_check_notices_a_login_that_is_more_than_it_should_be(db: Database, what: str) -> None:
    statements, expected = LOGINS[what]
    differences = found_with(db, "create role more login", *statements.format(login="more").split("; "))
    assert any(re.match(expected.format(login="more"), line) for line in differences), differences


@pytest.mark.pg(">= 16")
def test_check_notices_a_login_that_could_grant_itself_another_role(db: Database) -> None:
    assert "extra login more: also admin of durable_auditor" in found_with(
        db,
        "create role more login",
        "grant durable_app to more",
        "grant durable_auditor to more with admin true, inherit false, set false",
    )
