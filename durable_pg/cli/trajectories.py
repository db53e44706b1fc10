"""demo --trajectories: a progress bar while the runs of a file are recorded, then the report."""

from __future__ import annotations

import json as jsonlib
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from durable_pg.cli._terminal import shown
from durable_pg.demo.database import DemoDatabase, demo_database
from durable_pg.demo.killing import TENANT, Survived, survive
from durable_pg.demo.recording import AgentRun
from durable_pg.demo.trajectories import NotTrajectories, Report, agent_runs, count, load, look, submit
from durable_pg.demo.working import Plan


def on_trajectories(console: Console, file: Path, *, workers: int, submissions: int, kills: int, json: bool) -> None:
    """Record, count, work under kills, count, report. Exits 1, and says what is off, unless every count is met."""
    try:
        found = load(file)
    except NotTrajectories as error:
        raise NotTrajectories(f"{file}: {error}") from None
    with demo_database(lambda step: console.print(f"[dim]·[/dim] {step} ...")) as database:
        console.print(
            f"[dim]·[/dim] Submitting {len(found)} runs {submissions} times as app, by {workers} processes ..."
        )
        with _progress(console) as progress:
            task = progress.add_task("events", total=count(found).events * submissions)
            report = submit(
                database.url("app"),
                found,
                workers=workers,
                submissions=submissions,
                advance=lambda events: progress.advance(task, events),
            )
        console.print("[dim]·[/dim] Counting what is recorded, as the login auditor ...")
        look(database.url("auditor"), report)
        survived = _survive(console, database, agent_runs(found), workers, kills)
    faults = report.faults() + survived.faults()
    if json:
        facts = _facts(report, database.postgres) | {
            "survived": asdict(survived),
            "faults": faults,
            "passed": not faults,
        }
        typer.echo(jsonlib.dumps(facts, ensure_ascii=False))
    else:
        _show(console, report)
        _show_survived(console, survived, workers)
        verdict = f"[red]{len(faults)} counts are off[/red]" if faults else "every count is that of the file"
        console.print(f"Postgres {database.postgres}: {verdict}.")
    for fault in faults:
        typer.echo(f"error: {fault}", err=True)
    if faults:
        raise typer.Exit(1)


def _survive(console: Console, database: DemoDatabase, runs: list[AgentRun], workers: int, kills: int) -> Survived:
    console.print(
        f"[dim]·[/dim] Working the same runs by {workers} processes, their tool calls as effects, and killing"
        f" {kills} of them ..."
    )
    with TemporaryDirectory(prefix="durable-pg-provider-") as folder, _progress(console) as progress:
        task = progress.add_task("events", total=sum(len(run.events) for run in runs))
        log = Path(folder) / "provider.log"
        plan = Plan(database.url("app"), database.url("maintainer"), TENANT, log, runs)
        return survive(
            plan,
            database.url("auditor"),
            workers=workers,
            kills=kills,
            advance=lambda events: progress.advance(task, events),
        )


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("  {task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        expand=True,
    )


def _facts(report: Report, postgres: str) -> dict[str, Any]:
    return {
        "postgres": postgres,
        "workers": report.workers,
        "submissions": report.submissions,
        "recorded": asdict(report.recorded),
        "duplicates_refused": report.outcomes["duplicate"],
        "chains_intact": report.intact,
        "outcomes": dict(report.outcomes),
        "seconds": round(report.seconds, 3),
        "events_per_second": round(report.calls / report.seconds),
    }


def _numbers(rows: list[tuple[int, str]]) -> Table:
    numbers = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    numbers.add_column(justify="right")
    numbers.add_column()
    for number, what in rows:
        numbers.add_row(f"{number:,}", what)
    return numbers


def _show_survived(console: Console, survived: Survived, workers: int) -> None:
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


def _show(console: Console, report: Report) -> None:
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
