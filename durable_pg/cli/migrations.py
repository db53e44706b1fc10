"""upgrade, downgrade, current, sql, check."""

from __future__ import annotations

from typing import Annotated

import typer

from durable_pg import catalog, migrate
from durable_pg.cli.output import Json, Url, emit, reporting

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
    json: Json = False,
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
        emit(json, _facts(report), _text(report))


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
    json: Json = False,
) -> None:
    """Go back to an earlier revision.

    Exits 7, and changes nothing, while a table that would be dropped holds rows; --drop-data drops them. Roles, the
    schema and its version table stay: drop those by hand when nobody needs them any more.
    """
    with reporting(json, "revisions that were undone stay so, the one that was running is as before"):
        report = migrate.downgrade(url, to=to, drop_data=drop_data, wait=wait, lock_timeout=lock_timeout)
        emit(json, _facts(report), _text(report))


def current(url: Url = None, json: Json = False) -> None:
    """Tell which revision the database is at. Writes nothing and waits for nobody.

    Works as the migration login and as an auditor.
    """
    with reporting(json, "nothing was written"):
        revision, head = migrate.current(url), migrate.head()
        text = revision or "none: schema durable has not been made here"
        if revision is not None and revision != head:
            text += f" (this package goes to {head})"
        emit(json, {"current": revision, "head": head}, text)


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
    json: Json = False,
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


def check(url: Url = None, json: Json = False) -> None:
    """Compare the live schema with the one of this package, and print every difference.

    Missing, extra and changed objects, grants, owners, policies, trigger modes (as pg_restore may leave them),
    attributes of the eight roles, and logins that hold two front roles. Works as the migration login and as an auditor.
    Exits 1 when there are differences.
    """
    with reporting(json, "nothing was written"):
        revision, head = migrate.current(url), migrate.head()
        if revision != head:
            migrate.require_known(revision)
        found = catalog.check(url)
        facts = {"current": revision, "head": head, "differences": [difference.as_dict() for difference in found]}
        lines = [str(difference) for difference in found]
        if revision != head:
            lines.insert(
                0, f"the database is at {revision or 'no revision'}, this package at {head}: durable-pg upgrade"
            )
        lines.append(f"{len(found)} differences" if found else f"schema durable is as this package makes it ({head})")
        emit(json, facts, "\n".join(lines))
    if found:
        raise typer.Exit(1)


def _facts(report: migrate.Report) -> dict[str, object]:
    return {
        "before": report.before,
        "after": report.after,
        "steps": report.steps,
        "waited": report.waited,
        "grants": list(report.grants),
    }


def _text(report: migrate.Report) -> str:
    lines = [f"ran: {statement}" for statement in report.grants]
    waited = "waited for another migration, " if report.waited else ""
    if report.steps:
        lines.append(f"{waited}went from {report.before or 'base'} to {report.after or 'base'}")
    else:
        lines.append(f"{waited}already at {report.after or 'base'}")
    return "\n".join(lines)
