"""The offline script: what the online runner does, as text for psql, made without a database."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Any

from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from durable_pg.migrate import paths
from durable_pg.migrate.database import LOCK_KEY, MIGRATION_SETTINGS
from durable_pg.migrate.errors import BadRequest
from durable_pg.migrate.runner import VERSION_SCHEMA, operations

_HEADER = """\
-- durable_pg {start}:{end}, made by durable-pg sql. Run it as the migration login (never a superuser):
--     psql -v ON_ERROR_STOP=1 -f this_file          one transaction a revision
--     psql -1 -v ON_ERROR_STOP=1 -f this_file       the same; the warnings about transactions are harmless
\\set ON_ERROR_STOP on
"""

_BEGIN = """\
begin;
{settings}
set local lock_timeout = '10s';
do $guard$
declare
    v_found text;
begin
    perform pg_catalog.pg_advisory_xact_lock({key});
    if exists (
        select from pg_catalog.pg_class as c
        where c.relname = 'alembic_version' and c.relnamespace = 'durable'::regnamespace
    ) then
        execute 'select version_num from durable.alembic_version' into v_found;
    end if;
    if v_found is distinct from {before} then
        raise exception using
            errcode = '55W07',
            message = 'this script does not start from the revision of this database',
            detail = format('script: %s, database: %s', {before_text}, coalesce(v_found, 'base')),
            hint = 'Make the script for this database: durable-pg current, then durable-pg sql FROM:TO.',
            schema = 'durable';
    end if;
end
$guard$;"""


# By whether it starts, and whether it ends, at base.
_VERSION = {
    (True, False): "insert into durable.alembic_version (version_num) values ({after});\n",
    (False, True): "delete from durable.alembic_version where version_num = {before};\n",
    (False, False): "update durable.alembic_version set version_num = {after} where version_num = {before};\n",
}


def script(directory: ScriptDirectory, revisions: str, *, drop_data: bool) -> str:
    """The script for a range such as base:head. Raises BadRequest for what is none."""
    order, first, last = _range(directory, revisions)
    out = io.StringIO()
    out.write(_HEADER.format(start=order[first], end=order[last]))
    if first == last:
        out.write("-- Nothing to do.\n")
        return out.getvalue()
    if first < last:
        out.write("\n--! sql/roles.sql\n")
        out.write((paths.sql_dir() / "roles.sql").read_text(encoding="utf-8"))
    path = order[first : last + 1] if first < last else list(reversed(order[last : first + 1]))
    for before, after in pairwise(path):
        if not _revision(out, directory, before, after, up=first < last, drop_data=drop_data):
            break
    return out.getvalue()


def is_downward(directory: ScriptDirectory, revisions: str) -> bool:
    """Whether a range leads down."""
    _, first, last = _range(directory, revisions)
    return last < first


def _range(directory: ScriptDirectory, revisions: str) -> tuple[list[str], int, int]:
    """All revisions in order, and the places of both ends in it."""
    start, separator, end = revisions.partition(":")
    if not separator or not start or not end:
        raise BadRequest(
            f"not a range of revisions: {revisions!r}", hint="Write FROM:TO, such as base:head or 0002:head."
        )
    order = ["base", *(str(entry.revision) for entry in reversed(list(directory.walk_revisions())))]
    return order, _place(order, start), _place(order, end)


def _place(order: list[str], name: str) -> int:
    if name == "head":
        return len(order) - 1
    if name not in order:
        raise BadRequest(f"there is no revision {name}", hint=f"Known are: {', '.join(order)}, head.")
    return order.index(name)


def _literal(revision: str) -> str:
    return "null" if revision == "base" else f"'{revision}'"


def _revision(
    out: io.StringIO, directory: ScriptDirectory, before: str, after: str, *, up: bool, drop_data: bool
) -> bool:
    settings = "\n".join(f"set local {name} = {_setting(value)};" for name, value in MIGRATION_SETTINGS.items())
    if not up:
        settings += f"\nset local durable.drop_data = '{'on' if drop_data else 'off'}';"
    out.write(f"\n-- {before} -> {after}\n")
    out.write(_BEGIN.format(settings=settings, key=LOCK_KEY, before=_literal(before), before_text=f"'{before}'") + "\n")
    body = io.StringIO()
    context = MigrationContext.configure(
        dialect_name="postgresql",
        opts={"as_sql": True, "output_buffer": body, "version_table_schema": VERSION_SCHEMA, "literal_binds": True},
    )
    module: Any = directory.get_revision(after if up else before).module
    try:
        with operations(context):
            (module.upgrade if up else module.downgrade)()
    except Exception as error:  # noqa: BLE001
        # A hand-written step that asks the live database. What comes before it is still a whole script.
        out.write(f"rollback;\n-- This step can't be made offline ({type(error).__name__}: {error}).\n")
        out.write(f"-- Run it with a connection: durable-pg {'upgrade' if up else 'downgrade'} --to {after}\n")
        return False
    out.write(body.getvalue())
    out.write("set local role durable_owner;\n")
    out.write(_VERSION[before == "base", after == "base"].format(before=_literal(before), after=_literal(after)))
    out.write("commit;\n")
    return True


def _setting(value: str) -> str:
    return value if value in {"on", "off"} or "," in value else f"'{value}'"
