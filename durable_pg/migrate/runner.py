"""Runs the steps of an upgrade or downgrade on a connection, with Alembic's own bookkeeping."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import alembic.op
from alembic.config import Config
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.engine import Connection

from durable_pg.migrate import paths
from durable_pg.migrate.database import may_become, migration_role, rows, settings, transaction, unreadable
from durable_pg.migrate.errors import BadRequest, DatabaseIsNewer

VERSION_SCHEMA = "durable"
# alembic.op is one a process: threads that migrate several databases take turns, a revision each.
_OP = threading.RLock()
_VERSION_TABLE = (
    "select has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')"
    " from pg_catalog.pg_class as c inner join pg_catalog.pg_namespace as n on n.oid = c.relnamespace"
    " where n.nspname = 'durable' and c.relname = 'alembic_version'"
)
Steps = Callable[[tuple[str, ...], MigrationContext], Iterable[Any]]


def script_directory() -> ScriptDirectory:
    """Alembic's view of migrations/."""
    config = Config()
    config.set_main_option("script_location", str(paths.migrations_dir()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)


@contextmanager
def operations(context: MigrationContext) -> Iterator[None]:
    """Make alembic.op speak for this context. Alembic's own guard doesn't nest: an outer migration's op is put back."""
    with _OP:
        outer = getattr(alembic.op, "_proxy", None)
        inner = Operations(context)
        inner._install_proxy()  # noqa: SLF001
        try:
            yield
        finally:
            inner._remove_proxy()  # noqa: SLF001
            if outer is not None:
                outer._install_proxy()  # noqa: SLF001


def read_current(connection: Connection) -> str | None:
    """The revision of this database, or None. Reads only; works as the migration login and as an auditor."""
    found = rows(connection, _VERSION_TABLE)
    if not found:
        return None
    if found[0][0]:
        return _version(connection)
    for role in ("durable_owner", "durable_auditor"):
        if may_become(connection, role):
            with settings(connection, {"role": role}):
                return _version(connection)
    raise unreadable(connection, "the revision of this database")


def is_made(connection: Connection) -> bool:
    """Whether a migration was ever run here, even if it was taken back to base since."""
    return bool(rows(connection, _VERSION_TABLE))


def _version(connection: Connection) -> str | None:
    found = rows(connection, "select version_num from durable.alembic_version")
    if len(found) > 1:
        raise BadRequest(f"durable.alembic_version holds {len(found)} rows, expected at most one")
    return str(found[0][0]) if found else None


def require_target(script: ScriptDirectory, revision: str) -> None:
    """Raise BadRequest for a revision that doesn't exist, before anything is made. Relative ones come later."""
    if "+" in revision or "-" in revision:
        return
    try:
        script.get_revision(revision)
    except CommandError as error:
        raise BadRequest(f"there is no revision {revision}", hint=_known(script)) from error


def _known(script: ScriptDirectory) -> str:
    return f"Known are: base, {', '.join(reversed([str(entry.revision) for entry in script.walk_revisions()]))}, head."


def require_known(script: ScriptDirectory, revision: str | None) -> None:
    """Raise DatabaseIsNewer for a revision that this package doesn't know."""
    if revision is None:
        return
    known = [str(entry.revision) for entry in script.walk_revisions()]
    if revision not in known:
        raise DatabaseIsNewer(
            f"this database is at revision {revision}, which this durable-pg doesn't know (it ends at {known[0]})",
            hint="The database is newer than the package: upgrade the package (pip install -U durable-pg).",
        )


def context_for(connection: Connection, script: ScriptDirectory, steps: Steps) -> MigrationContext:
    """Alembic's context for these steps, with the version table in schema durable."""
    return MigrationContext.configure(
        connection,
        opts={
            "version_table_schema": VERSION_SCHEMA,
            "transaction_per_migration": False,
            "script": script,
            "fn": steps,
        },
    )


def run_steps(
    connection: Connection, script: ScriptDirectory, plan: Steps, extra_settings: Mapping[str, str]
) -> tuple[str | None, str | None, int]:
    """Run each step in its own transaction, or all in the caller's; return revision before, after, and the number."""
    with transaction(connection):
        before = read_current(connection)
    require_known(script, before)
    heads = (before,) if before else ()
    try:
        planned = list(plan(heads, context_for(connection, script, plan)))
    except CommandError as error:
        raise BadRequest(str(error), hint=_known(script)) from error
    for step in planned:
        _run_step(connection, script, step, extra_settings)
    with transaction(connection):
        after = read_current(connection)
    return before, after, len(planned)


def _run_step(connection: Connection, script: ScriptDirectory, step: Any, extra_settings: Mapping[str, str]) -> None:
    with transaction(connection), migration_role(connection, extra_settings):
        context = context_for(connection, script, lambda *_: [step])
        with operations(context):
            context.run_migrations()
