"""Verdicts in words, and what to do next about a run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from durable_pg.cli._terminal import lasting, shown
from durable_pg.inspection import Timeline, Verdict

# How long a run may say nothing before it looks dead: models and tools take minutes, not more.
_SILENCE = timedelta(minutes=15)
_WORDS = {
    "no_tool_recorded": "yes: no tool call is recorded, so the same turn may be sent again",
    "tools_recorded": "no: tool calls are recorded and may have had their effect",
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
    names_tools = verdict.tools and verdict.reason in {"tools_recorded", "tools_executed", "unknown"}
    blocking = f" ({', '.join(verdict.tools)})" if names_tools else ""
    return shown(words + blocking)


def tools_in_words(timeline: Timeline) -> str:
    """Say what is known of the tools that the run executed; NULL means that nobody knows."""
    run, so_far = timeline.run, ", ".join(timeline.retry_verdict.tools)
    if run.tools_executed is not None:
        return shown(", ".join(run.tools_executed) or "none")
    if run.settled_at is not None:
        return "unknown: nothing recorded names tools"
    return shown(f"not settled; recorded so far: {so_far or 'none'}")


def next_steps(timeline: Timeline) -> Iterator[str]:
    """Say what a person on call can do about this run."""
    run, tools = timeline.run, shown(", ".join(timeline.retry_verdict.tools))
    if run.settled_at is None:
        silent = timeline.read_at - max([run.started_at, *(event.recorded_at for event in timeline.events)])
        if silent < _SILENCE:
            yield f"It may be at work: it recorded something {lasting(silent)} ago. Look again in a while."
            return
        yield f"Nothing was recorded for {lasting(silent)}. Is its process dead?"
        if tools:
            yield f"Ask the provider behind each tool whether its call took effect: {tools}."
        yield (
            "If it is dead, settle it as failed, as its tenant and user, with the application's login: "
            'docs/operate.md, "Runs that are stuck".'
        )
    elif run.status == "succeeded":
        yield "Nothing: whoever sends this turn again gets the recorded result."
    elif timeline.replay_verdict.allowed:
        yield "The same input may be run again, under a new invocation."
    elif tools or run.tools_executed:
        named = shown(", ".join(run.tools_executed or timeline.retry_verdict.tools))
        yield f"Before the turn is said again, ask the provider behind each tool whether its call took effect: {named}."
    else:
        yield "Before the turn is said again, find out what it did (logs of the worker, the tools' providers)."
