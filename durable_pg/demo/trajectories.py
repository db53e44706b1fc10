"""A file of real agent runs through the client: eight processes submit each of them three times, shuffled.

What the file holds is counted apart from what is recorded, and every count must be met.
"""

from __future__ import annotations

import gzip
import json
import random
import signal
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg

from durable_pg import Durable
from durable_pg.demo.recording import AgentRun, Event, record

TENANT = "airline-one"
_SEED = 7

RECORDED = """
select count(*), count(*) filter (where r.status = 'succeeded'),
    count(*) filter (where coalesce(r.tools_executed, '{}') = (
    select coalesce(array_agg(distinct tool order by tool), '{}')
    from durable.events as e, unnest(e.tool_calls) as tool
    where e.tenant_id = r.tenant_id and e.session_uid = r.session_uid
))
from durable.runs as r
"""
LOGGED = "select count(*), count(*) filter (where e.opening) from durable.events as e"
CALLED = "select tool, count(*) from durable.events, unnest(tool_calls) as tool group by tool order by 2 desc, 1"
CHAINED = """
select count(*) filter (where v.intact and v.events_checked = s.last_seq)
from durable.sessions as s, durable.verify_session(session_uid => s.session_uid) as v
"""


class NotTrajectories(ValueError):
    """The file is not a list of runs as this command reads them."""


@dataclass(frozen=True)
class Counts:
    """How much there is of everything."""

    runs: int
    events: int
    user_turns: int
    tool_calls: dict[str, int]


@dataclass
class Report:
    """What was submitted, what was answered, and what is recorded in the end."""

    file: Counts
    workers: int
    submissions: int
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    recorded: Counts = Counts(0, 0, 0, {})
    succeeded: int = 0
    complete: int = 0
    intact: int = 0

    @property
    def calls(self) -> int:
        """Events submitted, repeats included."""
        return self.outcomes["appended"] + self.outcomes["duplicate"]

    def faults(self) -> list[str]:
        """Every count that is off; none when all is as it must be."""
        expected, repeats = self.file, self.submissions - 1
        checks: dict[str, tuple[Any, Any]] = {
            "runs": (expected.runs, self.recorded.runs),
            "events": (expected.events, self.recorded.events),
            "user turns": (expected.user_turns, self.recorded.user_turns),
            "tool calls": (expected.tool_calls, self.recorded.tool_calls),
            "runs that succeeded": (expected.runs, self.succeeded),
            "runs that name all their tools": (expected.runs, self.complete),
            "sessions whose chain is intact": (expected.runs, self.intact),
            "events appended": (expected.events, self.outcomes["appended"]),
            "duplicates refused": (expected.events * repeats, self.outcomes["duplicate"]),
            "runs started": (expected.runs, self.outcomes["start_run: started"]),
            "runs settled": (expected.runs, self.outcomes["settle_run: settled"]),
            "runs told busy or settled": (
                expected.runs * repeats,
                self.outcomes["start_run: busy"] + self.outcomes["start_run: settled"],
            ),
            "settlements repeated": (
                self.outcomes["start_run: settled"],
                self.outcomes["settle_run: already_settled"],
            ),
        }
        return [f"{what}: expected {want}, found {got}" for what, (want, got) in checks.items() if want != got]


def load(file: Path) -> list[dict[str, Any]]:
    """The runs of a JSON file, packed by gzip or not. Raises NotTrajectories and OSError."""
    raw = file.read_bytes()
    try:
        found = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise NotTrajectories(f"no JSON: {error}") from None
    if not isinstance(found, list) or not found:
        raise NotTrajectories("expected a list of runs")
    for place, run in enumerate(found):
        if not _is_run(run):
            raise NotTrajectories(
                f"run {place} is not an object with task_id, trial, user_id and OpenAI chat messages, each with"
                " a role, not all of them system"
            )
    return found


def _is_run(run: Any) -> bool:
    return (
        isinstance(run, dict)
        and run.keys() >= {"task_id", "trial", "user_id", "messages"}
        and isinstance(run["messages"], list)
        and all(_is_message(message) for message in run["messages"])
        and any(message["role"] != "system" for message in run["messages"])
    )


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        return False
    calls = message.get("tool_calls") or []
    return isinstance(calls, list) and all(
        isinstance(call, dict) and isinstance(call.get("function"), dict) and "name" in call["function"]
        for call in calls
    )


def count(found: list[dict[str, Any]]) -> Counts:
    """What the file holds, by roles and tool calls alone."""
    messages = [message for run in found for message in run["messages"] if message["role"] != "system"]
    tools = Counter(call["function"]["name"] for message in messages for call in message.get("tool_calls") or [])
    return Counts(len(found), len(messages), sum(message["role"] == "user" for message in messages), dict(tools))


def agent_runs(found: list[dict[str, Any]]) -> list[AgentRun]:
    """The runs as they are recorded: one session each, system messages left out."""
    return [
        AgentRun(
            "openai_chat",
            run["user_id"],
            f"task-{run['task_id']}-trial-{run['trial']}",
            [Event(message["role"], message) for message in run["messages"] if message["role"] != "system"],
        )
        for run in found
    ]


def submit(
    url: str, found: list[dict[str, Any]], *, workers: int, submissions: int, advance: Callable[[int], None]
) -> Report:
    """Let worker processes submit every run so many times as the app; `advance` hears of events as they are done."""
    report = Report(count(found), workers, submissions)
    shuffled = agent_runs(found) * submissions
    random.Random(_SEED).shuffle(shuffled)
    with _workers(url, workers) as pool:
        started = time.perf_counter()
        for done in as_completed([pool.submit(_record, run) for run in shuffled]):
            outcomes = done.result()
            report.outcomes += outcomes
            advance(outcomes["appended"] + outcomes["duplicate"])
        report.seconds = time.perf_counter() - started
    return report


def look(url: str, report: Report) -> None:
    """Count what is recorded, as the auditor."""
    with psycopg.connect(url) as auditor:
        runs, report.succeeded, report.complete = _row(auditor, RECORDED)
        events, turns = _row(auditor, LOGGED)
        report.recorded = Counts(runs, events, turns, dict(auditor.execute(CALLED).fetchall()))
        (report.intact,) = _row(auditor, CHAINED)


def _row(connection: psycopg.Connection[Any], query: str) -> Any:
    return connection.execute(query.encode()).fetchone()


@contextmanager
def _workers(url: str, number: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(number, get_context("spawn"), initializer=_connect, initargs=(url,))
    try:
        # Every process is up before the clock starts.
        for ready in [pool.submit(_is_connected) for _ in range(number)]:
            ready.result()
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


# What each worker process holds.
_durable: Durable


def _connect(url: str) -> None:
    global _durable  # noqa: PLW0603  # one for the life of the process
    # A terminal's Ctrl-C reaches every process of the group; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _durable = Durable.from_url(url, max_size=1)
    _durable.open()


def _is_connected() -> bool:
    return _durable is not None


def _record(run: AgentRun) -> Counter[str]:
    return record(_durable.act_as(TENANT, run.user_id), run)
