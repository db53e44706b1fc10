"""upgrade, downgrade, current, sql, check."""

from __future__ import annotations

from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from durable_pg import migrate
from durable_pg.cli.options import AsJson, Url
from durable_pg.cli.output import emit, reporting
from durable_pg.migrate import catalog
from durable_pg.migrate.connection import connect

Wait = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=0, help="How long to wait for another migration of this database to end."),
]
LockTimeout = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="How long a statement may wait for a lock on a table. A migration that waits makes everybody queue behind "
        "it, so it gives up and can be run again. 0: for ever.",
    ),
]
_LOGIN = "Existing login that gets the front role {role}. A login holds one front role; a second one is refused."


def upgrade(  # noqa: PLR0917  # typer reads options from parameters
    url: Url = None,
    to: Annotated[
        str, typer.Option(metavar="REVISION", help="Where to stop: a revision such as 0001, or head.")
    ] = "head",
    app_login: Annotated[str | None, typer.Option(metavar="NAME", help=_LOGIN.format(role="durable_app"))] = None,
    operator_login: Annotated[
        str | None, typer.Option(metavar="NAME", help=_LOGIN.format(role="durable_operator"))
    ] = None,
    maintainer_login: Annotated[
        str | None, typer.Option(metavar="NAME", help=_LOGIN.format(role="durable_maintainer"))
    ] = None,
    auditor_login: Annotated[
        str | None, typer.Option(metavar="NAME", help=_LOGIN.format(role="durable_auditor"))
    ] = None,
    wait: Wait = 60.0,
    lock_timeout: LockTimeout = 10.0,
    json: AsJson = False,
) -> None:
    """Make the roles and the schema if they are missing, and bring the schema up to date.

    Run it as a login of its own that owns the database and (the first time) has CREATEROLE: never as a superuser, never
    as the application. Run it again at any time: it changes nothing that is done already. Several at once wait
    for each other. Each revision is one transaction; an interrupted upgrade goes on where it stopped.

    Exits 3 when this login may not make the roles; the statements for a DBA are then on stdout, and after them the same
    command works.
    """
    logins = {"app": app_login, "operator": operator_login, "maintainer": maintainer_login, "auditor": auditor_login}
    with reporting(json, "revisions that were finished stay, the one that was running is undone"):
        report = migrate.upgrade(url, to=to, wait=wait, lock_timeout=lock_timeout, logins=logins)
        _tell(report, json)


def downgrade(  # noqa: PLR0917
    to: Annotated[
        str,
        typer.Option(metavar="REVISION", help="Where to stop: a revision, -1, or base (nothing but roles and schema)."),
    ],
    url: Url = None,
    drop_data: Annotated[
        bool, typer.Option("--drop-data", help="Drop tables even if they hold rows. The record of your runs is lost.")
    ] = False,
    wait: Wait = 60.0,
    lock_timeout: LockTimeout = 10.0,
    json: AsJson = False,
) -> None:
    """Go back to an earlier revision.

    Exits 7, and changes nothing, while a table that would be dropped holds rows; --drop-data drops them. Roles, the
    schema and its version table stay: drop those by hand when nobody needs them any more.
    """
    with reporting(json, "revisions that were undone stay so, the one that was running is as before"):
        report = migrate.downgrade(url, to=to, drop_data=drop_data, wait=wait, lock_timeout=lock_timeout)
        _tell(report, json)


def current(url: Url = None, json: AsJson = False) -> None:
    """Tell which revision the database is at. Writes nothing and waits for nobody.

    Works as the migration login and as an auditor.
    """
    with reporting(json, "nothing was written"):
        with connect(url) as connection, connection.begin():
            installed, revision, head = migrate.is_installed(connection), migrate.current(connection), migrate.head()
        nothing = "at base" if installed else "none: durable_pg is not installed here"
        text = revision or nothing
        if installed and revision != head:
            text += f" (this package goes to {head})"
        emit(json, {"current": revision, "head": head, "installed": installed}, text)


def sql(
    revisions: Annotated[
        str, typer.Argument(metavar="FROM:TO", help="A range such as base:head, 0001:head, or downwards head:base.")
    ] = "base:head",
    downgrade: Annotated[
        bool, typer.Option("--downgrade", help="Write the way back: head:base, or the given range.")
    ] = False,
    drop_data: Annotated[
        bool, typer.Option("--drop-data", help="Downwards: drop tables even if they hold rows.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Write the script for psql that does what upgrade (or downgrade) does, without a database.

    For shops where a DBA reviews and runs all DDL. The result is the same as that of upgrade, privileges and owners
    included. Run it as the migration login: psql -v ON_ERROR_STOP=1 -f script.sql
    """
    with reporting(json, "nothing was written"):
        if downgrade and revisions == "base:head":
            revisions = "head:base"
        script = migrate.offline_sql(revisions, drop_data=drop_data)
        if downgrade != migrate.is_downward(revisions):
            raise migrate.BadRequest(
                f"{revisions} does not lead {'down' if downgrade else 'up'}", hint="See --downgrade."
            )
        emit(json, {"range": revisions, "sql": script}, script.rstrip("\n"))


def check(
    url: Url = None,
    guard_owner: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE",
            help="Role of yours that puts our guards on its own tables: its USAGE on schema durable and EXECUTE on the "
            "functions which that takes are accepted, and nothing else. Can be given several times.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Compare the live schema with the one of this package, and print every difference.

    Missing, extra and changed objects, grants, owners, policies, trigger modes (as pg_restore may leave them),
    attributes of the eight roles, and logins that hold two front roles. Works as the migration login and as an auditor.
    Exits 1 when there are differences, or when durable_pg is not installed.
    """
    with reporting(json, "nothing was written"):
        with connect(url) as connection, connection.begin():
            revision, head = migrate.current(connection), migrate.head()
            if revision != head:
                migrate.require_known(revision)
            found = catalog.check(connection, guard_owners=guard_owner or ()) if revision else []
            lines = [str(difference) for difference in found]
            if revision is None:
                lines = [_not_installed(connection)]
            elif revision != head:
                lines.insert(0, f"the database is at {revision}, this package at {head}: durable-pg upgrade")
            installed = migrate.is_installed(connection)
        facts: dict[str, object] = {"current": revision, "head": head, "installed": installed}
        facts["differences"] = [difference.as_dict() for difference in found]
        if revision is not None:
            done = f"schema durable is as this package makes it ({head})"
            lines.append(f"{len(found)} differences" if found else done)
        emit(json, facts, "\n".join(lines))
    if found or revision != head:
        raise typer.Exit(1)


def _not_installed(connection: Connection) -> str:
    row = connection.exec_driver_sql("select current_database()::text, session_user::text").one()
    what = "is at base" if migrate.is_installed(connection) else "is not installed"
    return f"durable_pg {what} in database {row[0]} (as {row[1]}): run durable-pg upgrade"


def _tell(report: migrate.Report, json: bool) -> None:
    emit(json, _facts(report), _text(report))
    for warning in report.warnings:
        typer.echo(f"warning: {warning}", err=True)


def _facts(report: migrate.Report) -> dict[str, object]:
    return {
        "before": report.before,
        "after": report.after,
        "steps": report.steps,
        "waited": report.waited,
        "grants": list(report.grants),
        "warnings": list(report.warnings),
    }


def _text(report: migrate.Report) -> str:
    lines = [f"ran: {statement}" for statement in report.grants]
    waited = "waited for another migration, " if report.waited else ""
    if report.steps:
        lines.append(f"{waited}went from {report.before or 'base'} to {report.after or 'base'}")
    else:
        lines.append(f"{waited}already at {report.after or 'base'}")
    return "\n".join(lines)
