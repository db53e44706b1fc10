"""The reports of the demo."""

from __future__ import annotations

from itertools import groupby

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from durable_pg.cli.show.terminal import shown
from durable_pg.demo.main import DemoReport
from durable_pg.demo.trajectories import Submitted, Survived
from durable_pg.demo.worker import Killed


def print_demo(console: Console, report: DemoReport) -> None:
    """Print what was recorded, refused and survived."""
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


def _recorded(report: DemoReport) -> Table:
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


def _refused(console: Console, report: DemoReport) -> None:
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


def print_submitted(console: Console, report: Submitted) -> None:
    """Print how much of everything is recorded."""
    recorded = report.recorded
    rows = [
        (recorded.runs, "runs, each with one record of how it ended and which tools it called"),
        (recorded.events, "events, in order, each there once"),
        (recorded.user_turns, "user turns, each there once"),
        (report.outcomes["duplicate"], "duplicates refused, out of " + f"{report.calls:,} events submitted"),
        (report.intact, "hash chains intact"),
        (round(report.calls / report.seconds), f"events per second, by {report.workers} processes"),
    ]
    tools = Table(title="Tool calls found in the messages", box=box.SIMPLE_HEAD, title_justify="left")
    tools.add_column("tool")
    tools.add_column("calls", justify="right")
    for tool, calls in recorded.tool_calls.items():
        # Names out of the file are text, not markup.
        tools.add_row(Text(shown(tool)), f"{calls:,}")
    tools.add_row("all", f"{sum(recorded.tool_calls.values()):,}", style="bold")
    console.print()
    console.print(_numbers(rows))
    console.print()
    console.print(tools)


def print_survived(console: Console, survived: Survived, workers: int) -> None:
    """Print what came of the runs whose workers were killed."""
    console.print("[italic]Worked by processes that were killed[/italic]")
    rows = [
        (survived.kills, f"workers killed (SIGKILL), out of {workers} at a time"),
        (survived.resumes, "times that another worker took a run up where it was"),
        (survived.succeeded, "runs that succeeded in the end"),
        (survived.executed, f"effects executed at the provider, of {survived.expected:,} that the agents meant"),
        (survived.executed_twice, "of them executed twice"),
        (survived.from_ledger, "effects asked for again and answered from the ledger"),
        (survived.resolved, "effects unverified after a kill, and resolved by asking the provider"),
    ]
    console.print(_numbers(rows))
    console.print()


def _numbers(rows: list[tuple[int, str]]) -> Table:
    numbers = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    numbers.add_column(justify="right")
    numbers.add_column()
    for number, what in rows:
        numbers.add_row(f"{number:,}", what)
    return numbers
