"""sessions list, sessions show, sessions verify."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from durable_pg import inspection
from durable_pg._migration.errors import BadRequest
from durable_pg.cli._lists import print_runs, print_sessions
from durable_pg.cli._looking import As, Full, Limit, Looking, Tenant, User, looking, print_json
from durable_pg.cli._terminal import Page, ago, shown
from durable_pg.cli._timeline import Entry, block, labelled, moment, print_log
from durable_pg.cli.output import Json, Url
from durable_pg.inspection import SessionRow, SessionView, Verification, View

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
    json: Json = False,
) -> None:
    """List open sessions (or the closed ones), the latest activity first.

    Example: durable-pg sessions list --tenant acme --app support
    """
    with looking(url, json, tenant, user, acts_as) as look, look.begin() as view:
        given: dict[str, Any] = {"tenant": view.tenant, "user": view.user, "app": app_name, "closed": closed}
        found = inspection.list_sessions(look.connection, **given, limit=limit + 1)
        more, found = len(found) > limit, found[:limit]
        if json:
            print_json({"sessions": found, "more": more})
            return
        if not found:
            kind = "closed" if closed else "open"
            typer.echo(f"No {kind} sessions here. Names are exact: see --tenant, --user, --app.", err=True)
            return
        page = Page()
        print_sessions(page, found, view, inspection.now(look.connection))
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
    json: Json = False,
) -> None:
    """Show a session: its state, its runs, and the latest of what was said.

    A name means the open session; if there is none, the one that was closed last. --json holds all events and runs
    unless --events is given.

    Example: durable-pg sessions show support/s-1 --tenant acme --user user-7 --events 50
    """
    with looking(url, json, tenant, user, acts_as) as look, look.begin() as view:
        found = inspection.find_session(look.connection, session, tenant=view.tenant, user=view.user)
        latest = events if events is not None else None if json else 10
        whole = inspection.read_session(look.connection, found, runs=None if json else 20, latest=latest)
        if json:
            print_json(whole)
            return
        page = Page()
        _print_session(page, whole, view, full)
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
    json: Json = False,
) -> None:
    """Recompute the hash chain of sessions, and name each one that is broken and where.

    Exits 1 when any is. A change by somebody who rewrote a whole chain shows only against a head hash that was kept
    elsewhere: docs/operate.md, "Proving the log".

    Example: durable-pg sessions verify --all --tenant acme
    """
    with looking(url, json, tenant, user, acts_as) as look:
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
        verified = f"{_counted(len(found), 'session')}, {_counted(events, 'event')}"
        page.line(f"{verified}: {f'{len(broken)} BROKEN' if broken else 'all intact'}")
        page.print()
    if broken:
        raise typer.Exit(1)


def _named(look: Looking, names: list[str]) -> Iterator[SessionRow]:
    with look.begin() as view:
        found = [inspection.find_session(look.connection, name, tenant=view.tenant, user=view.user) for name in names]
    yield from found


def _every(look: Looking) -> Iterator[SessionRow]:
    last: SessionRow | None = None
    while True:
        with look.begin() as view:
            page = inspection.page_of_sessions(look.connection, tenant=view.tenant, user=view.user, after=last)
        if not page:
            return
        yield from page
        last = page[-1]


def _verify(look: Looking, sessions: Iterator[SessionRow], tell: bool) -> Iterator[Verification]:
    """Verify each in a transaction of its own; tell a person who waits how far it is."""
    tell = tell and sys.stderr.isatty()
    for place, session in enumerate(sessions, 1):
        with look.begin():
            checked = inspection.verify_session(look.connection, session)
        if tell:
            typer.echo(f"\r{_counted(place, 'session')} verified", nl=False, err=True)
        yield checked
    if tell:
        typer.echo("\r\x1b[K", nl=False, err=True)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _print_broken(checked: Verification) -> None:
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


def _print_session(page: Page, whole: SessionView, view: View, full: bool) -> None:
    session, now = whole.session, whole.read_at
    is_open = session.closed_at is None
    page.line(("session ", "dim"), (str(session.session_uid), "bold"), "  ", "open" if is_open else ("closed", "red"))
    labelled(page, "name", f"{session.app_name}/{session.session_id}")
    labelled(page, "tenant", session.tenant_id)
    labelled(page, "user", session.user_id)
    labelled(page, "opened", f"{moment(session.created_at)} ({ago(now - session.created_at)})")
    labelled(page, "last active", f"{moment(session.updated_at)} ({ago(now - session.updated_at)})")
    if session.closed_at is not None:
        labelled(page, "closed", f"{moment(session.closed_at)}, reason: {session.close_reason or 'none given'}")
    rewinds = f", {session.rewinds} of them rewinds" if session.rewinds else ""
    labelled(page, "revision", f"{session.revision}, {_counted(session.last_seq, 'event')}{rewinds}")
    block(page, "state (its own; app: and user: are shared)", session.state, full=full, most=6)
    page.line()
    if whole.runs:
        page.line(("runs, the newest", "dim"))
        print_runs(page, whole.runs, view, now)
    else:
        page.line(("runs: none", "dim"))
    page.line()
    if whole.events:
        page.line((f"events, the latest {len(whole.events)} of {session.last_seq}", "dim"))
        print_log(page, list(_entries(whole)), full=full)
    else:
        page.line(("events: none is recorded", "dim"))


def _entries(whole: SessionView) -> Iterator[Entry]:
    invocation: str | None = None
    for event in whole.events:
        if event.invocation_id != invocation:
            invocation = event.invocation_id
            yield Entry(
                event.recorded_at, "", mark=f"invocation {shown(invocation)}" if invocation else "no invocation"
            )
        yield Entry(event.recorded_at, f"{event.recorded_at:%m-%d %H:%M:%S}", event)
