"""Settings, roles, locks and multi-statement scripts, for whichever driver the caller brought."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Connection

from durable_pg.migrate.errors import BadRequest, DbaMustAct, LoginIsRuntime, MigrationError, WaitTimedOut

# "durable_" as eight bytes: the advisory lock that all migrations of one database take.
LOCK_KEY = int.from_bytes(b"durable_", "big")

# What every statement of ours is resolved in. The path of a database or a login may lead through a schema where an
# application can make functions: ours would call them, with the rights of the migration.
TRUSTED_PATH = "pg_catalog, pg_temp"

# How a migration sees the database. row_security = off turns "0 rows, ok" of a forced owner into an error.
MIGRATION_SETTINGS: Mapping[str, str] = {
    "search_path": TRUSTED_PATH,
    "role": "durable_owner",
    "row_security": "off",
    "client_min_messages": "warning",
    "standard_conforming_strings": "on",
    "check_function_bodies": "on",
}


def rows(connection: Connection, sql: str, **parameters: Any) -> Sequence[Any]:
    """All rows of a query."""
    return connection.execute(text(sql), parameters).fetchall()


def execute_script(connection: Connection, script: str) -> None:
    """Runs several statements in one round trip, exactly as written: no parameters, so % and : mean themselves."""
    if connection.dialect.driver == "asyncpg":
        adapted: Any = connection.connection.dbapi_connection
        adapted.run_async(lambda raw: raw.execute(script))
        return
    connection.exec_driver_sql(script, execution_options={"no_parameters": True})


@contextmanager
def settings(connection: Connection, values: Mapping[str, str]) -> Iterator[None]:
    """Settings for a part of the current transaction; afterwards the caller's are back.

    After an error they need no care: the rollback, of the transaction or to the caller's savepoint, restores them.
    """
    before = {
        name: rows(connection, "select pg_catalog.current_setting(:name, true)", name=name)[0][0] for name in values
    }
    _set(connection, values)
    yield
    _set(connection, {name: value or "" for name, value in before.items()})


def _set(connection: Connection, values: Mapping[str, str]) -> None:
    for name, value in values.items():
        rows(connection, "select pg_catalog.set_config(:name, :value, true)", name=name, value=value)


def require_transaction(connection: Connection) -> None:
    """Raise BadRequest for a connection in autocommit mode."""
    raw: Any = connection.connection.dbapi_connection
    if getattr(raw, "autocommit", False) is True:
        raise BadRequest(
            "this connection is in autocommit mode; a migration needs a transaction",
            hint="Call it outside of autocommit_block(), on a connection without isolation_level AUTOCOMMIT.",
        )


@contextmanager
def migration_role(connection: Connection, extra: Mapping[str, str] | None = None) -> Iterator[None]:
    """The settings of a migration, for the current transaction."""
    refuse_runtime_login(connection)
    if not may_become(connection, "durable_owner"):
        login = rows(connection, "select quote_ident(session_user)")[0][0]
        raise DbaMustAct(
            f"login {login} may not act as durable_owner",
            statements=(f"grant durable_owner to {login};",),
            hint="Migrations run as the login that made the roles, or as one a DBA has granted durable_owner.",
        )
    with settings(connection, {**MIGRATION_SETTINGS, **(extra or {})}):
        yield


def runtime_login(connection: Connection) -> tuple[str, str] | None:
    """The login and the front roles it holds, if any; never a superuser, who would seem to hold them all."""
    found = rows(
        connection,
        "select quote_ident(l.rolname), string_agg(quote_ident(r.rolname), ', ' order by r.rolname)"
        " from pg_catalog.pg_roles as l inner join pg_catalog.pg_roles as r"
        " on pg_catalog.pg_has_role(l.oid, r.oid, 'USAGE') or pg_catalog.pg_has_role(l.oid, r.oid,"
        " case when current_setting('server_version_num')::integer >= 160000 then 'SET' else 'MEMBER' end)"
        " where l.rolname = session_user and not l.rolsuper"
        " and r.rolname in ('durable_app', 'durable_operator', 'durable_maintainer', 'durable_auditor')"
        " group by l.rolname",
    )
    return (found[0][0], found[0][1]) if found else None


def refuse_runtime_login(connection: Connection) -> None:
    """Raise LoginIsRuntime for a login that holds a front role."""
    runtime = runtime_login(connection)
    if runtime:
        raise LoginIsRuntime(
            f"{runtime[0]} is a runtime login ({runtime[1]}); it must never migrate",
            hint="Connect as the migration login.",
        )


def unreadable(connection: Connection, what: str) -> MigrationError:
    """What to raise when a login may not read `what`. A runtime login is never told to ask for more."""
    hint = "Connect as the migration login or as an auditor."
    runtime = runtime_login(connection)
    if runtime:
        return LoginIsRuntime(f"{runtime[0]} is a runtime login ({runtime[1]}); it may not read {what}", hint=hint)
    login = rows(connection, "select quote_ident(session_user)")[0][0]
    statements = (f"grant durable_auditor to {login};",)
    return DbaMustAct(f"login {login} may not read {what}", statements=statements, hint=hint)


def may_become(connection: Connection, role: str) -> bool:
    """Whether this login may SET ROLE to `role`; False for a role that is not there."""
    found = rows(
        connection,
        "select pg_catalog.pg_has_role(session_user, r.oid,"
        " case when current_setting('server_version_num')::integer >= 160000 then 'SET' else 'MEMBER' end)"
        " from pg_catalog.pg_roles as r where r.rolname = :role",
        role=role,
    )
    return bool(found and found[0][0])


@contextmanager
def exclusive(connection: Connection, wait: float, *, session: bool) -> Iterator[bool]:
    """The one migration at a time of this database; yields whether it had to wait for another.

    Asked for again and again instead of queued for: a waiting statement would hold a snapshot, and couldn't be bounded.
    """
    function = "pg_try_advisory_lock" if session else "pg_try_advisory_xact_lock"
    deadline = time.monotonic() + wait
    waited = False
    while not rows(connection, f"select pg_catalog.{function}(:key)", key=LOCK_KEY)[0][0]:
        if time.monotonic() >= deadline:
            raise WaitTimedOut(
                f"another migration of this database is still running after {wait:g} s of waiting",
                detail=_holder(connection),
                hint="Wait for it to end and run this again, or allow more time (--wait).",
            )
        waited = True
        if session:
            connection.commit()
        time.sleep(min(0.05 + random.random() * 0.15, max(0.0, deadline - time.monotonic())))
    if session:
        connection.commit()
    try:
        yield waited
    finally:
        if session and not connection.closed and not connection.invalidated:
            connection.rollback()
            rows(connection, "select pg_catalog.pg_advisory_unlock(:key)", key=LOCK_KEY)
            connection.commit()


def _holder(connection: Connection) -> str:
    holders = rows(
        connection,
        "select l.pid, a.usename, a.application_name, a.client_addr::text"
        " from pg_catalog.pg_locks as l left join pg_catalog.pg_stat_activity as a on a.pid = l.pid"
        " where l.locktype = 'advisory' and l.granted and l.objsubid = 1"
        " and l.database = (select d.oid from pg_catalog.pg_database as d where d.datname = current_database())"
        " and l.classid::bigint = :high and l.objid::bigint = :low",
        high=LOCK_KEY >> 32,
        low=LOCK_KEY & 0xFFFFFFFF,
    )
    return "; ".join(
        f"held by backend {pid} of {user or 'an unknown user'} ({name or 'no application name'}, {address or 'local'})"
        for pid, user, name, address in holders
    )


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """A transaction of its own, or the one that the caller is in."""
    with connection.begin() if not connection.in_transaction() else nullcontext():
        yield
