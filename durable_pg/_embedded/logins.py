"""The logins of a server that we provision: one for each front role, and one that migrates."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from durable_pg.migrate.roles import ALL, BACK, FRONT, OWNER

MIGRATOR = "mig"
LOGINS = (*FRONT, MIGRATOR)


class Credentials(NamedTuple):
    """What a login is called, and the password it comes in with."""

    name: str
    password: str


def provision(admin: psycopg.Connection[Any], logins: Mapping[str, Credentials], *, roles: bool) -> None:
    """What a DBA does before the first migration: make these logins, by kind of work; none of them a superuser.

    With `roles` the DBA makes durable_pg's roles and grants them, too; then the migrator needs no CREATEROLE. Without
    it the migrator does both. `admin` needs CREATEROLE, and to be a superuser where a login is there already.
    """
    modern = admin.info.server_version >= 160000
    if roles and modern:
        # Otherwise, on a server that sets it, this admin would become a member of all that it makes.
        admin.execute("set createrole_self_grant = ''")
    present = {str(name) for (name,) in admin.execute("select rolname from pg_catalog.pg_roles")}
    if roles:
        _make_roles(admin, present)
    for kind, login in logins.items():
        _make_login(admin, login, _attributes(kind, makes_roles=not roles), present)
    if roles:
        _grant_roles(admin, logins, modern)


def _make_roles(admin: psycopg.Connection[Any], present: set[str]) -> None:
    for role in (name for name in ALL if name not in present):
        # A migration on this server may be making them too.
        with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            _execute(admin, "create role {} nologin", role)


def _attributes(kind: str, *, makes_roles: bool) -> str:
    if kind != MIGRATOR:
        return "nocreaterole inherit"
    return f"{'createrole' if makes_roles else 'nocreaterole'} noinherit"


def _make_login(admin: psycopg.Connection[Any], login: Credentials, attributes: str, present: set[str]) -> None:
    # A new login is no superuser; only a superuser may say so of one that is there.
    verb = "alter role {} nosuperuser nobypassrls nocreatedb" if login.name in present else "create role {}"
    # Hashed here, so that no log of the server ever holds it.
    verifier = admin.pgconn.encrypt_password(login.password.encode(), login.name.encode(), b"scram-sha-256").decode()
    statement = sql.SQL(f"{verb} login {attributes} password {{}}")
    admin.execute(statement.format(sql.Identifier(login.name), sql.Literal(verifier)))


def _grant_roles(admin: psycopg.Connection[Any], logins: Mapping[str, Credentials], modern: bool) -> None:
    become, inherit = (" with inherit false, set true", " with inherit true") if modern else ("", "")
    for role in (OWNER, *BACK):
        _execute(admin, "grant {} to {}" + become, role, logins[MIGRATOR].name)
    for kind, role in FRONT.items():
        _execute(admin, "grant {} to {}" + inherit, role, logins[kind].name)


def _execute(admin: psycopg.Connection[Any], statement: str, *names: str) -> None:
    admin.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
