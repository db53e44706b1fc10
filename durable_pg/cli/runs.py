"""runs list, runs show."""

from __future__ import annotations

from typing import Annotated

import typer

from durable_pg.cli import read
from durable_pg.cli.options import As, AsJson, Full, Limit, Tenant, Url, User, as_moment
from durable_pg.cli.output import print_json
from durable_pg.cli.read import View
from durable_pg.cli.reader import reading
from durable_pg.cli.show.tables import print_runs
from durable_pg.cli.show.terminal import Page, shown
from durable_pg.cli.show.timeline import print_run

# Without --events, of a run with more than that only the latest are shown to a person.
_EVENTS = 1000

app = typer.Typer(
    name="runs",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Look at runs: which there are, and what happened in one. Writes nothing.\n\n"
    "With the URL of an application's login (--tenant, --user), an operator's (--tenant) or an auditor's.\n\n"
    "Example: durable-pg runs list --tenant acme --status running --since 2h",
)


@app.command("list")
def list_(  # noqa: PLR0917  # typer reads options from parameters
    url: Url = None,
    tenant: Tenant = None,
    user: User = None,
    acts_as: As = None,
    session: Annotated[
        str | None, typer.Option(metavar="SESSION", help="Of one session: APP/SESSION_ID, or its uid.")
    ] = None,
    app_name: Annotated[str | None, typer.Option("--app", metavar="NAME", help="Of one app.")] = None,
    status: Annotated[
        str | None,
        typer.Option(
            metavar="STATUS",
            help="Of one status: running, interrupted (lease over, too), awaiting, succeeded, failed or cancelled.",
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Started since: 30m, 2h, 7d, or 2026-01-31T22:15 (UTC).")
    ] = None,
    limit: Limit = 50,
    json: AsJson = False,
) -> None:
    """List runs, the newest first.

    STATUS says lease over where a run is still called running but nobody holds it: the next start_run takes it up.
    TOOLS says what was executed: none; unknown where nothing recorded tells; - until the run is settled. With --json,
    times are ISO 8601 and durations in seconds.

    Example: durable-pg runs list --tenant acme --user user-7 --session support/s-1
    """
    with reading(url, json, tenant, user, acts_as) as look, look.begin() as view:
        connection = look.connection
        now = read.now(connection)
        its = (
            read.find_session(connection, session, tenant=view.tenant, user=view.user) if session is not None else None
        )
        # One more than asked for tells whether there are more.
        found = read.list_runs(
            connection,
            tenant=its.tenant_id if its else view.tenant,
            user=view.user,
            app=app_name,
            session=its.session_uid if its else None,
            status=status,
            since=as_moment(since, now) if since is not None else None,
            limit=limit + 1,
        )
        more, found = len(found) > limit, found[:limit]
        if json:
            print_json({"runs": found, "more": more})
            return
        narrowed = any(given is not None for given in (session, app_name, status, since))
        if not found:
            typer.echo(_nothing(view, narrowed), err=True)
            return
        page = Page()
        print_runs(page, found, view, now)
        page.print()
        if more:
            typer.echo(f"These are the newest {limit}; there are more: --limit, --since.", err=True)


@app.command()
def show(  # noqa: PLR0917
    run_uid: Annotated[
        str, typer.Argument(metavar="RUN_UID", help="The run's uid, or its beginning (8 characters or more).")
    ],
    url: Url = None,
    tenant: Tenant = None,
    user: User = None,
    acts_as: As = None,
    events: Annotated[
        int | None, typer.Option(metavar="N", min=0, help=f"Only the latest N events; 0: all. Without: {_EVENTS}.")
    ] = None,
    full: Full = False,
    json: AsJson = False,
) -> None:
    """Tell what happened in a run, from its input to what can be done about it now.

    Signs: » said, ~ thought, → tool called, ← tool answered. Times count from the start of the run, as recorded by the
    database. "send again" is retry_verdict: may the same turn be sent again automatically? "replay" is replay_verdict:
    may a new run start from the same input? --json holds every event, and contents whole.

    Example: durable-pg runs show 01931c2a-7f3e --tenant acme --user user-7
    """
    with reading(url, json, tenant, user, acts_as) as look, look.begin() as view:
        run = read.find_run(look.connection, run_uid, tenant=view.tenant, user=view.user)
        latest = events if events is not None else None if json else _EVENTS
        timeline = read.read_timeline(look.connection, run, latest=latest)
        if json:
            print_json(timeline)
            return
        page = Page()
        print_run(page, timeline, full=full)
        page.print()


def _nothing(view: View, narrowed: bool) -> str:
    whose = [f"{kind} {name}" for kind, name in (("tenant", view.tenant), ("user", view.user)) if name is not None]
    of = f" of {', '.join(whose)}" if whose else ""
    if narrowed:
        return shown(f"No runs{of} fit: try fewer options, or another --tenant or --user.")
    return shown(f"No runs{of}. Names are exact; start_run makes the first one.")
