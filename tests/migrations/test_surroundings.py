"""check notices what stands around the schema and could lift a rule."""

import re

import pytest

from durable_pg import catalog
from tests.harness import Database

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
# Roles belong to the whole server: these are undone again.
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


@pytest.mark.parametrize("what", LOGINS)
def test_check_notices_a_login_that_is_more_than_it_should_be(db: Database, what: str) -> None:
    statements, expected = LOGINS[what]
    login = f"more_{db.name}"
    with db.server.connect() as root:
        root.execute(f"create role {login} login".encode())
        try:
            for statement in statements.format(login=login).split("; "):
                root.execute(statement.encode())
            assert any(re.match(expected.format(login=login), line) for line in found(db)), found(db)
        finally:
            root.execute(f"drop role {login}".encode())


@pytest.mark.pg(">= 16")
def test_check_notices_a_login_that_could_grant_itself_another_role(db: Database) -> None:
    login = f"more_{db.name}"
    with db.server.connect() as root:
        root.execute(f"create role {login} login".encode())
        try:
            root.execute(f"grant durable_app to {login}".encode())
            root.execute(f"grant durable_auditor to {login} with admin true, inherit false, set false".encode())
            assert f"extra login {login}: also admin of durable_auditor" in found(db)
        finally:
            root.execute(f"drop role {login}".encode())
