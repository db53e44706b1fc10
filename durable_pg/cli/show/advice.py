"""Verdicts in words, and what to do next about a run."""

from __future__ import annotations

from collections.abc import Iterator

from durable_pg.cli.read import RunDetails, Timeline
from durable_pg.cli.show.terminal import ago, lasting, shown
from durable_pg.types import Verdict

_WORDS = {
    "no_tool_recorded": "yes: no tool call is recorded, so the same turn may be sent again",
    "tools_recorded": "no: tool calls are recorded and may have had their effect",
    "nothing_repeats": "yes: tools were called, but none would do anything twice",
    "unverified": "no: nobody knows whether an effect happened",
    "settled": "no: it is settled; whoever sends the turn again is told its outcome",
    "nothing_executed": "yes: it is known that no tool was called",
    "not_settled": "no: it is not settled",
    "succeeded": "no: it succeeded",
    "unknown": "no: nobody knows what it did, since nothing recorded tells",
    "tools_executed": "no: tools were executed, and would be again",
}


def in_words(verdict: Verdict) -> str:
    """Say a verdict, with the tools that block by name."""
    words = _WORDS.get(verdict.reason, f"{'yes' if verdict.allowed else 'no'}: {verdict.reason}")
    names_tools = verdict.tools and verdict.reason in {"tools_recorded", "tools_executed", "unverified", "unknown"}
    blocking = f" ({', '.join(verdict.tools)})" if names_tools else ""
    return shown(words + blocking)


def tools_in_words(timeline: Timeline) -> str:
    """Say what is known of the tools that the run executed; NULL means that nobody knows."""
    run, so_far = timeline.run, ", ".join(timeline.tools_recorded or ())
    if run.tools_executed is not None:
        return shown(", ".join(run.tools_executed) or "none")
    if run.settled_at is not None:
        return "unknown: nothing recorded names tools"
    return shown(f"not settled; recorded so far: {so_far or 'none'}")


def lease_in_words(timeline: Timeline) -> str:
    """Say who holds a run that is not settled, or since when nobody does."""
    run, waiting = timeline.run, timeline.read_at - timeline.run.lease_expires_at
    if run.status == "running" and not run.lease_over:
        return shown(f"for another {lasting(-waiting)}, held by {run.lease_holder}")
    if run.lease_over:
        return shown(f"ran out {ago(waiting)}, was held by {run.lease_holder}")
    return f"none, given up {ago(waiting)}"


def next_steps(timeline: Timeline) -> Iterator[str]:
    """Say what a person on call can do about this run."""
    run = timeline.run
    if run.settled_at is None:
        yield from _of_open(timeline)
        return
    if timeline.replay_verdict.reason == "unverified":
        yield _to_look_into(timeline.replay_verdict)
    if run.status == "succeeded":
        yield "Nothing: whoever sends this turn again gets the recorded result."
    elif timeline.replay_verdict.allowed:
        yield "The same input may be run again, under a new invocation."
    elif timeline.tools_recorded or run.tools_executed:
        named = shown(", ".join(run.tools_executed or timeline.tools_recorded or ()))
        yield f"Before the turn is said again, ask the provider behind each tool whether its call took effect: {named}."
    else:
        yield "Before the turn is said again, find out what it did (logs of the worker, the tools' providers)."


def _of_open(timeline: Timeline) -> Iterator[str]:
    run = timeline.run
    if run.session_closed_at is not None and (run.lease_over or run.status != "running"):
        yield 'Its session is closed, so nothing takes it up. Call it off: docs/operate.md, "Runs whose worker died".'
        return
    if run.status == "awaiting":
        yield "It waits for a decision of a person."
        return
    if run.status == "running" and not run.lease_over:
        yield "It may be at work. If its worker is dead, the run is free as soon as the lease is over."
        return
    if timeline.retry_verdict.reason == "unverified":
        yield _to_look_into(timeline.retry_verdict)
    yield _taken_up(run)


def _to_look_into(verdict: Verdict) -> str:
    return (
        f"Find out whether these took effect: {shown(', '.join(verdict.tools))}. durable-pg effects list --status "
        "unverified --json has what the provider knows them by, effects resolve takes the answer; docs/operate.md."
    )


def _taken_up(run: RunDetails) -> str:
    if run.attempts_left is not None and run.attempts_left <= 0:
        return (
            "Nothing by hand: it has no attempt left, and the next start_run of this invocation settles it as failed."
        )
    return f"Nothing by hand: the next start_run of this invocation takes it up, as attempt {run.attempt + 1}."
