"""sessions list, sessions show, sessions verify."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from durable_pg.cli import read
from durable_pg.cli.options import As, AsJson, Full, Limit, Tenant, Url, User
from durable_pg.cli.output import print_json
from durable_pg.cli.read import SessionSummary, VerifiedSession
from durable_pg.cli.reader import Reader, reading
from durable_pg.cli.show.tables import print_sessions
from durable_pg.cli.show.terminal import Page, counted
from durable_pg.cli.show.timeline import labelled, print_session
from durable_pg.command_errors import BadRequest

app = typer.Typer(
    name="sessions",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Look at sessions: which there are, what was said, whether their log is as it was written. Writes nothing.\n\n"
    "With the URL of an application's login (--tenant, --user), an operator's (--tenant) or an auditor's.\n\n"
    "Example: durable-pg sessions show support/s-1 --tenant acme --user user-7",
)


@app.command("list")
def list_(  # noqa: PLR0917  # typer reads options from parameters
    url: Url = None,
    tenant: Tenant = None,
    user: User = None,
    acts_as: As = None,
    app_name: Annotated[str | None, typer.Option("--app", metavar="NAME", help="Of one app.")] = None,
    closed: Annotated[bool, typer.Option("--closed", help="The closed ones, which list_sessions hides.")] = False,
    limit: Limit = 50,
    json: AsJson = False,
) -> None:
    """List open sessions (or the closed ones), the latest activity first.

    Example: durable-pg sessions list --tenant acme --app support
    """
    with reading(url, json, tenant, user, acts_as) as look, look.begin() as view:
        given: dict[str, Any] = {"tenant": view.tenant, "user": view.user, "app": app_name, "closed": closed}
        found = read.list_sessions(look.connection, **given, limit=limit + 1)
        more, found = len(found) > limit, found[:limit]
        if json:
            print_json({"sessions": found, "more": more})
            return
        if not found:
            kind = "closed" if closed else "open"
            typer.echo(f"No {kind} sessions here. Names are exact: see --tenant, --user, --app.", err=True)
            return
        page = Page()
        print_sessions(page, found, view, read.now(look.connection))
        page.print()
        if more:
            typer.echo(f"These are the latest {limit}; there are more: --limit.", err=True)


@app.command()
def show(  # noqa: PLR0917
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="APP/SESSION_ID, or the session's uid or its beginning.")
    ],
    url: Url = None,
    tenant: Tenant = None,
    user: User = None,
    acts_as: As = None,
    events: Annotated[int | None, typer.Option(metavar="N", min=0, help="The latest N events; 0: all. [10]")] = None,
    full: Full = False,
    json: AsJson = False,
) -> None:
    """Show a session: its state, its runs, and the latest of what was said.

    A name means the open session; if there is none, the one that was closed last. --json holds all events and runs
    unless --events is given.

    Example: durable-pg sessions show support/s-1 --tenant acme --user user-7 --events 50
    """
    with reading(url, json, tenant, user, acts_as) as look, look.begin() as view:
        found = read.find_session(look.connection, session, tenant=view.tenant, user=view.user)
        latest = events if events is not None else None if json else 10
        whole = read.read_session(look.connection, found, runs=None if json else 20, latest=latest)
        if json:
            print_json(whole)
            return
        page = Page()
        print_session(page, whole, view, full=full)
        page.print()


@app.command()
def verify(  # noqa: PLR0917
    sessions: Annotated[
        list[str] | None, typer.Argument(metavar="[SESSION]...", help="Each by APP/SESSION_ID, or by its uid.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every session that this login sees, closed ones too.")] = False,
    url: Url = None,
    tenant: Tenant = None,
    user: User = None,
    acts_as: As = None,
    json: AsJson = False,
) -> None:
    """Recompute the hash chain of sessions, and name each one that is broken and where.

    Exits 1 when any is. A change by somebody who rewrote a whole chain shows only against a head hash that was kept
    elsewhere: docs/operate.md, "Proving the log".

    Example: durable-pg sessions verify --all --tenant acme
    """
    with reading(url, json, tenant, user, acts_as) as look:
        if bool(sessions) == every:
            raise BadRequest("name sessions, or say --all", hint="Such as: durable-pg sessions verify support/s-1")
        found = []
        for checked in _verify(look, _every(look) if every else _named(look, sessions or []), not json):
            found.append(checked)
            if not checked.intact and not json:
                _print_broken(checked)
    broken = [checked for checked in found if not checked.intact]
    if json:
        print_json({"verified": len(found), "broken": len(broken), "sessions": found})
    else:
        events = sum(checked.events_checked for checked in found)
        page = Page()
        verified = f"{counted(len(found), 'session')}, {counted(events, 'event')}"
        page.line(f"{verified}: {f'{len(broken)} BROKEN' if broken else 'all intact'}")
        page.print()
    if broken:
        raise typer.Exit(1)


def _named(look: Reader, names: list[str]) -> Iterator[SessionSummary]:
    with look.begin() as view:
        found = [read.find_session(look.connection, name, tenant=view.tenant, user=view.user) for name in names]
    yield from found


def _every(look: Reader) -> Iterator[SessionSummary]:
    last: SessionSummary | None = None
    while True:
        with look.begin() as view:
            page = read.page_of_sessions(look.connection, tenant=view.tenant, user=view.user, after=last)
        if not page:
            return
        yield from page
        last = page[-1]


def _verify(look: Reader, sessions: Iterator[SessionSummary], tell: bool) -> Iterator[VerifiedSession]:
    """Verify each in a transaction of its own; tell a person who waits how far it is."""
    tell = tell and sys.stderr.isatty()
    for place, session in enumerate(sessions, 1):
        with look.begin():
            checked = read.verify_session(look.connection, session)
        if tell:
            typer.echo(f"\r{counted(place, 'session')} verified", nl=False, err=True)
        yield checked
    if tell:
        typer.echo("\r\x1b[K", nl=False, err=True)


def _print_broken(checked: VerifiedSession) -> None:
    page = Page()
    if sys.stderr.isatty():
        typer.echo("\r\x1b[K", nl=False, err=True)
    page.line(
        *(("BROKEN ", "red"), (str(checked.session_uid), "bold")),
        f" at seq {checked.broken_seq}: {checked.problem}",
    )
    whose = f"{checked.app_name}/{checked.session_id}, tenant {checked.tenant_id}, user {checked.user_id}"
    labelled(page, "", whose)
    page.print()
