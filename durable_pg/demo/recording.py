"""Record a real agent run through the client: nothing but calls, each a transaction of its own."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from importlib import resources
from typing import Any

from durable_pg import Durable, Identity
from durable_pg.types import RunOutcome

APP = "airline"
# Between two questions whether a busy run is settled.
_BUSY = 0.02


@dataclass(frozen=True)
class Message:
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
    events: list[Message]


@dataclass
class Recorded:
    """What one run left behind after it was submitted three times."""

    format: str
    events: int
    user_turns: int
    tools_executed: list[str]
    duplicates: int
    intact: bool


def bundled_runs() -> list[AgentRun]:
    """The runs that come with the package, one in each message format."""
    folder = resources.files("durable_pg") / "demo" / "runs"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)
    return [_run(json.loads(file.read_text(encoding="utf-8"))) for file in files]


def _run(found: dict[str, Any]) -> AgentRun:
    return AgentRun(
        found["format"], found["user_id"], found["session_id"], [Message(**event) for event in found["events"]]
    )


def record(me: Identity, run: AgentRun) -> Counter[str]:
    """Record a run from its first message to its settlement; count the outcomes.

    May be called any number of times, from any number of processes at once: what is recorded already is told so.
    Each user turn has an invocation of its own, which is all that makes it unique; the other events have an event_id.
    Of all who record the same run one holds it; the others wait until it is settled and find everything recorded.
    """
    outcomes: Counter[str] = Counter()
    session = me.open_session(APP, run.session_id)
    turn = 0
    held: RunOutcome | None = None
    waited = False
    for place, event in enumerate(run.events, start=1):
        turn += event.is_user_turn
        appended = me.append_event(
            session,
            event.author,
            event.content,
            invocation_id=f"turn-{turn}" if event.is_user_turn else "turn-1",
            event_id=None if event.is_user_turn else f"event-{place}",
            attempt=None if event.is_user_turn or held is None else held.attempt,
        )
        outcomes[appended.outcome] += 1
        if held is None:
            held = me.start_run(session, "turn-1")
            outcomes[f"start_run: {held.outcome}"] += 1
            waited = held.outcome == "busy"
            while held.outcome == "busy":
                time.sleep(_BUSY)
                held = me.start_run(session, "turn-1")
    # Whoever executed the run meanwhile has settled it; if it died instead, the run is this one's now.
    if held is not None and not (waited and held.outcome == "settled"):
        settled = me.settle_run(held, "succeeded", result={"events": len(run.events)})
        outcomes[f"settle_run: {settled.outcome}"] += 1
    return outcomes


def submit_thrice(url: str, tenant: str, run: AgentRun) -> Recorded:
    """Record a run three times over, as a crashed and retried worker would; say what is there in the end."""
    outcomes: Counter[str] = Counter()
    with Durable.from_url(url) as durable:
        me = durable.act_as(tenant, run.user_id)
        for _ in range(3):
            outcomes += record(me, run)
        session = me.open_session(APP, run.session_id)
        events = me.read_events(session)
        (settled,) = me.list_runs(session)
        intact = me.verify_session(session).intact
    turns = sum(event.opening for event in events)
    complete = len(events) == len(run.events) and turns == sum(event.is_user_turn for event in run.events)
    tools = settled.tools_executed or []
    return Recorded(run.format, len(events), turns, tools, outcomes["duplicate"], intact and complete)
