"""Upgrade, downgrade and what the database is at: one migration at a time, with roles and logins before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection

from durable_pg.migrate import offline, roles, runner
from durable_pg.migrate.connection import connect
from durable_pg.migrate.database import (
    TRUSTED_PATH,
    exclusive,
    refuse_runtime_login,
    require_transaction,
    rows,
    settings,
    transaction,
)
from durable_pg.migrate.errors import BadRequest, DbaMustAct
from durable_pg.migrate.runner import Steps, read_current, run_steps, script_directory


@dataclass(frozen=True)
class Report:
    """What a migration did: revision before and after, steps run, GRANT statements run, whether it had to wait.

    `warnings` are for a person: what went well and should be done otherwise the next time.
    """

    before: str | None
    after: str | None
    steps: int
    waited: bool
    grants: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def head() -> str:
    """The last revision this package knows."""
    return str(script_directory().get_current_head())


def current(target: str | Connection | None = None) -> str | None:
    """The revision of the database; None when there is none. Writes nothing and takes no lock."""
    with connect(target) as connection:
        if isinstance(target, Connection):
            return read_current(connection)
        with connection.begin():
            return read_current(connection)


def is_installed(target: str | Connection | None = None) -> bool:
    """Whether an upgrade was ever run here; True also at base, which current() tells as None."""
    with connect(target) as connection:
        if isinstance(target, Connection):
            return runner.is_made(connection)
        with connection.begin():
            return runner.is_made(connection)


def upgrade(
    target: str | Connection | None = None,
    *,
    to: str = "head",
    wait: float = 60.0,
    lock_timeout: float = 10.0,
    logins: Mapping[str, str | None] | None = None,
) -> Report:
    """Makes the roles and the schema if they are missing, then runs the revisions up to `to`.

    With a URL (or None: the environment's): one migration at a time in a database, one transaction a revision. With a
    connection: everything in its current transaction, which stays the caller's to commit.

    `wait`: seconds to wait for another migration to end. `lock_timeout`: seconds to wait for a lock on one table.
    `logins`: front roles to give, such as {"app": "shop_backend"}; see durable_pg.migrate.roles.grant_logins.
    """

    def plan(script: ScriptDirectory) -> Steps:
        runner.require_target(script, to)
        return lambda heads, _: script._upgrade_revs(to, heads)  # type: ignore[arg-type]  # noqa: SLF001

    return _migrate(target, plan, wait, {"lock_timeout": _milliseconds(lock_timeout)}, roles.requested(logins))


def downgrade(
    target: str | Connection | None = None,
    *,
    to: str,
    drop_data: bool = False,
    wait: float = 60.0,
    lock_timeout: float = 10.0,
) -> Report:
    """Runs the down scripts to revision `to` ("base": everything but the roles, the schema and its version table).

    Refuses (RowsExist) while a table it would drop holds rows, unless `drop_data`.
    """

    def plan(script: ScriptDirectory) -> Steps:
        runner.require_target(script, to)
        return lambda heads, _: script._downgrade_revs(to, heads)  # type: ignore[arg-type]  # noqa: SLF001

    # Alembic takes "no revision" for base; a mistake must not drop a schema.
    if not to:
        raise BadRequest("downgrade needs a revision to go to", hint="Such as --to 0001, --to -1 or --to base.")

    extra = {"lock_timeout": _milliseconds(lock_timeout), "durable.drop_data": "on" if drop_data else "off"}
    return _migrate(target, plan, wait, extra, bootstrap=False)


def offline_sql(revisions: str = "base:head", *, drop_data: bool = False) -> str:
    """The script for psql that does what upgrade does; with "head:base" or "0003:0002", what downgrade does.

    Needs no database. Run it as the migration login: psql -v ON_ERROR_STOP=1 -f script.sql
    """
    return offline.script(script_directory(), revisions, drop_data=drop_data)


def is_downward(revisions: str) -> bool:
    """Whether a range such as "head:base" leads down."""
    return offline.is_downward(script_directory(), revisions)


def require_known(revision: str | None) -> None:
    """Raise DatabaseIsNewer for a revision that this package doesn't know."""
    runner.require_known(script_directory(), revision)


def run_for_alembic(target: str | Connection | None, steps: Steps) -> Report:
    """What migrations/env.py calls: the steps come from an alembic command."""
    return _migrate(target, lambda _: steps, 60.0, {"lock_timeout": "10000"})


def _trusted(connection: Connection, own: bool) -> AbstractContextManager[None]:
    """In a caller's transaction, our own path for what is asked there; a connection of ours has it already."""
    return nullcontext() if own else settings(connection, {"search_path": TRUSTED_PATH})


@contextmanager
def _boundary(connection: Connection, own: bool) -> Iterator[None]:
    """In a caller's transaction, a savepoint: a refusal leaves it as it was, and usable."""
    with nullcontext() if own else connection.begin_nested():
        yield


def _milliseconds(seconds: float) -> str:
    if seconds < 0:
        raise BadRequest("a timeout can't be negative")
    return str(round(seconds * 1000))


def _migrate(
    target: str | Connection | None,
    plan: Any,
    wait: float,
    extra_settings: Mapping[str, str],
    logins: Mapping[str, str] | None = None,
    *,
    bootstrap: bool = True,
) -> Report:
    script = script_directory()
    planned = plan(script)
    own = not isinstance(target, Connection)
    with connect(target) as connection:
        require_transaction(connection)
        with _boundary(connection, own), _trusted(connection, own), exclusive(connection, wait, session=own) as waited:
            grants: list[str] = []
            if not bootstrap:
                with transaction(connection):
                    refuse_runtime_login(connection)
            else:
                with transaction(connection):
                    try:
                        roles.bootstrap(connection)
                    except DbaMustAct as error:
                        raise roles.with_grants(connection, error, logins or {}) from error
                with transaction(connection):
                    grants = roles.grant_logins(connection, **(logins or {}))
            before, after, steps = run_steps(connection, script, planned, extra_settings)
            with transaction(connection):
                warnings = _warnings(connection)
            return Report(before, after, steps, waited, tuple(grants), warnings)


def _warnings(connection: Connection) -> tuple[str, ...]:
    found = rows(
        connection,
        "select quote_ident(rolname), quote_ident(current_database())"
        " from pg_catalog.pg_roles where rolname = session_user and rolsuper",
    )
    return tuple(
        f"{login} is a superuser, whom no rule binds: migrate as a login of its own (create role <a login of its own>"
        f" login createrole; alter database {database} owner to <that login>), and run the application as another"
        for login, database in found
    )
