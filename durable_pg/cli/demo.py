"""demo: the whole promise in one command, on four bundled runs or on a file of them."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from durable_pg.cli.output import Json
from durable_pg.cli.trajectories import on_trajectories
from durable_pg.demo.killed import Killed
from durable_pg.demo.main import Report, run_demo
from durable_pg.demo.trajectories import NotTrajectories
from durable_pg.server import NoEmbeddedServer


def demo(
    trajectories: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Instead of the bundled runs and the attacks: record the runs of this file (JSON, also gzipped: "
            "a list of objects with task_id, trial, user_id and OpenAI chat messages) and check every count.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="With a file: worker processes.")] = 8,
    submissions: Annotated[
        int, typer.Option(metavar="N", min=1, max=100, help="With a file: how often each run is submitted.")
    ] = 3,
    kills: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, max=1000, help="With a file: workers killed while they work its runs as agents would."
        ),
    ] = 30,
    json: Json = False,
) -> None:
    """Watch Postgres record real agent runs once and refuse to be cheated. Needs no Postgres, leaves nothing behind.

    Starts an embedded server in a temporary directory (extra "embedded"), migrates it as a login that is no superuser,
    records four real runs of a tool-calling agent as the app, attacks the record as the app, the operator, a function
    gone wrong and the owner, then kills a worker at the worst moment and goes on as another. Exits 1 if anything was
    not refused or answered as it must be, or if a count is off.
    """
    console = Console(stderr=json)
    with _reporting(json):
        if trajectories is None:
            _on_bundled_runs(console, json)
        else:
            on_trajectories(console, trajectories, workers=workers, submissions=submissions, kills=kills, json=json)


@contextmanager
def _reporting(json: bool) -> Iterator[None]:
    try:
        yield
    except (NoEmbeddedServer, NotTrajectories, OSError) as error:
        message = str(error)
        if json:
            typer.echo(jsonlib.dumps({"error": type(error).__name__, "message": message}))
        typer.echo(f"error: {message}", err=True)
        raise typer.Exit(1 if isinstance(error, NoEmbeddedServer) else 2) from None
    except KeyboardInterrupt:
        typer.echo("interrupted: the server is stopped and its data removed", err=True)
        raise typer.Exit(130) from None


def _on_bundled_runs(console: Console, json: bool) -> None:
    report = run_demo(lambda step: console.print(f"[dim]·[/dim] {step} ..."))
    if json:
        typer.echo(jsonlib.dumps(report.facts(), ensure_ascii=False))
    else:
        _show(console, report)
    if not report.passed:
        raise typer.Exit(1)


def _show(console: Console, report: Report) -> None:
    console.print()
    console.print(_recorded(report))
    _refused(console, report)
    _killed(console, report.killed)
    held = sum(tried.held for tried in report.tried)
    duplicates = sum(run.duplicates for run in report.recorded)
    console.print(
        f"Postgres {report.postgres}, revision {report.revision}: {len(report.recorded)} runs recorded once, "
        f"{duplicates} repeats told apart, {held} of {len(report.tried)} attacks refused, "
        f"rows {'unchanged' if report.unchanged else '[red]CHANGED[/red]'}."
    )
    console.print(
        "[dim]The honest limit: whoever can run SQL as the app can act as any of its users, and can leave out what it "
        "did. It can't rewrite what is recorded, record a thing twice, or become the owner.[/dim]"
    )


def _killed(console: Console, killed: Killed) -> None:
    console.print("[italic]A worker killed after the provider had acted, before anything was recorded[/italic]\n")
    for told in killed.told:
        console.print(f"    {told.who:<10} [green]{told.answer:<11}[/green] {told.about}", highlight=False)
    done = f"{killed.refunds} refund" if killed.refunds == 1 else f"[red]{killed.refunds} refunds[/red]"
    console.print(f"    provider   {done}\n", highlight=False)


def _recorded(report: Report) -> Table:
    table = Table(
        title="Recorded once, though submitted three times",
        box=box.SIMPLE_HEAD,
        title_justify="left",
        padding=(0, 1, 0, 0),
    )
    for column in ("format", "events", "turns", "repeats", "tools executed", "chain"):
        table.add_column(column, overflow="fold", no_wrap=column in {"format", "chain"})
    for run in report.recorded:
        table.add_row(
            run.format,
            str(run.events),
            str(run.user_turns),
            str(run.duplicates),
            ", ".join(run.tools_executed),
            "intact" if run.intact else "[red]BROKEN[/red]",
        )
    return table


def _refused(console: Console, report: Report) -> None:
    console.print("[italic]Refused[/italic]")
    for role, attempts in groupby(report.tried, key=lambda tried: tried.attack.role):
        console.print(f"\n  as [bold]{role}[/bold]")
        for tried in attempts:
            state = f"[green]{tried.sqlstate}[/green]" if tried.held else f"[red]{tried.sqlstate or 'none!'}[/red]"
            console.print(f"    {state}  {tried.attack.rule:<20} {tried.attack.what}", highlight=False)
            console.print(Padding(Text(tried.message, style="dim"), (0, 0, 0, 11)))
            if not tried.held:
                console.print(f"           [red]expected {tried.attack.sqlstate}[/red]")
    console.print()
