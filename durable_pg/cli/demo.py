"""demo: the whole promise in one command, on four bundled runs or on a file of them."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from durable_pg._embedded.database import TemporaryDatabase, temporary_database
from durable_pg._embedded.errors import ServerError
from durable_pg.cli.options import AsJson
from durable_pg.cli.show.demo import print_demo, print_submitted, print_survived
from durable_pg.demo.main import run_demo
from durable_pg.demo.recording import AgentRun
from durable_pg.demo.trajectories import (
    KILLED_TENANT,
    NotTrajectories,
    Submitted,
    Survived,
    agent_runs,
    count,
    load,
    look,
    submit,
    survive,
)
from durable_pg.demo.worker import Plan


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
    json: AsJson = False,
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
            _on_trajectories(console, trajectories, workers=workers, submissions=submissions, kills=kills, json=json)


@contextmanager
def _reporting(json: bool) -> Iterator[None]:
    try:
        yield
    except (ServerError, NotTrajectories, OSError) as error:
        message = str(error)
        if json:
            typer.echo(jsonlib.dumps({"error": type(error).__name__, "message": message}))
        typer.echo(f"error: {message}", err=True)
        raise typer.Exit(error.exit_code if isinstance(error, ServerError) else 2) from None
    except KeyboardInterrupt:
        typer.echo("interrupted: the server is stopped and its data removed", err=True)
        raise typer.Exit(130) from None


def _on_bundled_runs(console: Console, json: bool) -> None:
    report = run_demo(lambda step: console.print(f"[dim]·[/dim] {step} ..."))
    if json:
        typer.echo(jsonlib.dumps(report.facts(), ensure_ascii=False))
    else:
        print_demo(console, report)
    if not report.passed:
        raise typer.Exit(1)


def _on_trajectories(console: Console, file: Path, *, workers: int, submissions: int, kills: int, json: bool) -> None:
    """Record, count, work under kills, count, report. Exits 1, and says what is off, unless every count is met."""
    try:
        found = load(file)
    except NotTrajectories as error:
        raise NotTrajectories(f"{file}: {error}") from None
    with temporary_database(lambda step: console.print(f"[dim]·[/dim] {step} ...")) as database:
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
        print_submitted(console, report)
        print_survived(console, survived, workers)
        verdict = f"[red]{len(faults)} counts are off[/red]" if faults else "every count is that of the file"
        console.print(f"Postgres {database.postgres}: {verdict}.")
    for fault in faults:
        typer.echo(f"error: {fault}", err=True)
    if faults:
        raise typer.Exit(1)


def _survive(console: Console, database: TemporaryDatabase, runs: list[AgentRun], workers: int, kills: int) -> Survived:
    console.print(
        f"[dim]·[/dim] Working the same runs by {workers} processes, their tool calls as effects, and killing"
        f" {kills} of them ..."
    )
    with TemporaryDirectory(prefix="durable-pg-provider-") as folder, _progress(console) as progress:
        task = progress.add_task("events", total=sum(len(run.events) for run in runs))
        log = Path(folder) / "provider.log"
        plan = Plan(database.url("app"), database.url("maintainer"), KILLED_TENANT, log, runs)
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


def _facts(report: Submitted, postgres: str) -> dict[str, Any]:
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
