"""Record a real agent run through the client: nothing but calls, each a transaction of its own."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from importlib import resources
from typing import Any

from durable_pg.client import Identity


@dataclass(frozen=True)
class Event:
    """One message of a run, in its own format."""

    author: str
    content: Any

    @property
    def is_user_turn(self) -> bool:
        """Whether a person says something: Anthropic writes tool results as the user, too."""
        body = self.content.get("content")
        is_result = isinstance(body, list) and any(block.get("type") == "tool_result" for block in body)
        return self.author == "user" and not is_result


@dataclass(frozen=True)
class AgentRun:
    """What an agent did for one person."""

    format: str
    user_id: str
    session_id: str
    events: list[Event]


def bundled_runs() -> list[AgentRun]:
    """The runs that come with the package, one in each message format."""
    folder = resources.files("durable_pg") / "demo" / "runs"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)
    return [_run(json.loads(file.read_text(encoding="utf-8"))) for file in files]


def _run(found: dict[str, Any]) -> AgentRun:
    return AgentRun(
        found["format"], found["user_id"], found["session_id"], [Event(**event) for event in found["events"]]
    )


def record(me: Identity, run: AgentRun, *, app: str = "airline") -> Counter[str]:
    """Record a run from its first message to its settlement; count the outcomes.

    May be called any number of times, from any number of processes at once: what is recorded already is told so.
    Each user turn has an invocation of its own, which is all that makes it unique; the other events have an event_id.
    """
    outcomes: Counter[str] = Counter()
    session = me.open_session(app, run.session_id)
    turn = 0
    started = None
    for place, event in enumerate(run.events, start=1):
        turn += event.is_user_turn
        appended = me.append_event(
            session,
            event.author,
            event.content,
            invocation_id=f"turn-{turn}" if event.is_user_turn else "turn-1",
            event_id=None if event.is_user_turn else f"event-{place}",
        )
        outcomes[appended.outcome] += 1
        if started is None:
            started = me.start_run(session, "turn-1")
            outcomes[f"start_run: {started.outcome}"] += 1
    # Told busy, another one executes the run, and settles it.
    if started is not None and started.outcome != "busy":
        settled = me.settle_run(started, "succeeded", result={"events": len(run.events)})
        outcomes[f"settle_run: {settled.outcome}"] += 1
    return outcomes
