"""Record a real agent run through the SQL interface: nothing but function calls, each a transaction of its own."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import psycopg

OPEN = """
select session_uid from durable.open_session(
    me => durable.act_as(%(tenant)s, %(user)s), app_name => %(app)s, session_id => %(session)s)
"""
APPEND = """
select outcome from durable.append_event(
    me => durable.act_as(%(tenant)s, %(user)s), session_uid => %(session_uid)s, author => %(author)s,
    content => %(content)s, invocation_id => %(invocation)s, event_id => %(event)s)
"""
START = """
select run_uid, outcome from durable.start_run(
    me => durable.act_as(%(tenant)s, %(user)s), session_uid => %(session_uid)s, invocation_id => %(invocation)s)
"""
SETTLE = """
select outcome from durable.settle_run(
    me => durable.act_as(%(tenant)s, %(user)s), run_uid => %(run_uid)s, status => 'succeeded', result => %(result)s)
"""


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


def trajectories(file: Path) -> list[AgentRun]:
    """The runs of a file of agent trajectories: a JSON list with task_id, trial, user_id and OpenAI chat messages."""
    with gzip.open(file) as packed:
        found = json.load(packed)
    return [
        AgentRun(
            "openai_chat",
            run["user_id"],
            f"task-{run['task_id']}-trial-{run['trial']}",
            [Event(message["role"], message) for message in run["messages"] if message["role"] != "system"],
        )
        for run in found
    ]


def _run(found: dict[str, Any]) -> AgentRun:
    return AgentRun(
        found["format"], found["user_id"], found["session_id"], [Event(**event) for event in found["events"]]
    )


def record(connection: psycopg.Connection[Any], run: AgentRun, *, tenant: str, app: str = "airline") -> Counter[str]:
    """Record a run from its first message to its settlement; count the outcomes.

    May be called any number of times, from any number of processes at once: what is recorded already is told so.
    Each user turn has an invocation of its own, which is all that makes it unique; the other events have an event_id.
    """
    outcomes: Counter[str] = Counter()
    who = {"tenant": tenant, "user": run.user_id, "app": app, "session": run.session_id}
    session_uid = one_row(connection, OPEN, who)[0]
    who["session_uid"] = session_uid
    turn = 0
    run_uid = None
    for place, event in enumerate(run.events, start=1):
        turn += event.is_user_turn
        outcome = one_row(
            connection,
            APPEND,
            {
                **who,
                "author": event.author,
                "content": json.dumps(event.content),
                "invocation": f"turn-{turn}" if event.is_user_turn else "turn-1",
                "event": None if event.is_user_turn else f"event-{place}",
            },
        )[0]
        outcomes[outcome] += 1
        if run_uid is None:
            run_uid, outcome = one_row(connection, START, {**who, "invocation": "turn-1"})
            outcomes[f"start_run: {outcome}"] += 1
    result = json.dumps({"events": len(run.events)})
    outcomes[f"settle_run: {one_row(connection, SETTLE, {**who, 'run_uid': run_uid, 'result': result})[0]}"] += 1
    return outcomes


def one_row(connection: psycopg.Connection[Any], query: str, parameters: dict[str, Any]) -> Any:
    """Run a query that gives one row. Raises LookupError when it gives none."""
    row = connection.execute(query.encode(), parameters).fetchone()
    if row is None:
        raise LookupError(f"no row: {query}")
    return row
