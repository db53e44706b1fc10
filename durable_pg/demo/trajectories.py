"""A file of real agent runs through the client: eight processes submit each of them three times, shuffled.

Then the same runs are worked by processes that are killed at random and replaced, until every run is settled. What the
file holds is counted apart from what is recorded, and every count must be met.
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
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psycopg

from durable_pg import Durable
from durable_pg.demo.recording import AgentRun, Message, record
from durable_pg.demo.worker import Plan, Provider, has_effect, tool_calls, work

TENANT, KILLED_TENANT = "airline-one", "airline-two"
_SEED, _KILLING_SEED = 7, 11
_PATIENCE = 120.0

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

PROGRESS = """
select coalesce(sum(s.last_seq), 0)::integer,
    (select count(*) from durable.runs as r where r.tenant_id = %(tenant)s and r.settled_at is not null)::integer
from durable.sessions as s
where s.tenant_id = %(tenant)s
"""
FOUND = """
select count(*), count(*) filter (where r.status = 'succeeded'),
    coalesce(sum(r.attempt - r.first_attempt), 0)::integer, (
        select count(*) filter (where v.intact and v.events_checked = s.last_seq)
        from durable.sessions as s, durable.verify_session(session_uid => s.session_uid) as v
        where s.tenant_id = %(tenant)s
    ), (
        select coalesce(sum(s.last_seq), 0)::integer from durable.sessions as s where s.tenant_id = %(tenant)s
    ), (
        select count(*) from durable.effects as e where e.tenant_id = %(tenant)s and e.status = 'succeeded'
    ), (
        select count(*) from durable.effect_calls as c where c.tenant_id = %(tenant)s
    ) - (
        select count(*) from durable.effects as e where e.tenant_id = %(tenant)s
    ), (
        select count(*) from durable.audit_log as a where a.tenant_id = %(tenant)s and a.action = 'resolve_effect'
    )
from durable.runs as r
where r.tenant_id = %(tenant)s
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
class Submitted:
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
            [Message(message["role"], message) for message in run["messages"] if message["role"] != "system"],
        )
        for run in found
    ]


def submit(
    url: str, found: list[dict[str, Any]], *, workers: int, submissions: int, advance: Callable[[int], None]
) -> Submitted:
    """Let worker processes submit every run so many times as the app; `advance` hears of events as they are done."""
    report = Submitted(count(found), workers, submissions)
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


def look(url: str, report: Submitted) -> None:
    """Count what is recorded, as the auditor."""
    with psycopg.connect(url) as auditor:
        runs, report.succeeded, report.complete = _row(auditor, RECORDED)
        events, turns = _row(auditor, LOGGED)
        report.recorded = Counts(runs, events, turns, dict(auditor.execute(CALLED).fetchall()))
        (report.intact,) = _row(auditor, CHAINED)


def _row(connection: psycopg.Connection[Any], query: str, **parameters: str) -> Any:
    return connection.execute(query.encode(), parameters or None).fetchone()


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


@dataclass
class Survived:
    """What came of it. `expected`: the calls with an effect that the file holds; `executed`: what the provider did."""

    runs: int
    events: int
    expected: int
    kills_wanted: int
    kills: int = 0
    seconds: float = 0.0
    recorded: int = 0
    succeeded: int = 0
    resumes: int = 0
    intact: int = 0
    events_recorded: int = 0
    effects_succeeded: int = 0
    from_ledger: int = 0
    resolved: int = 0
    executed: int = 0
    executed_twice: int = 0

    def faults(self) -> list[str]:
        """Every count that is off; none when all is as it must be."""
        checks = {
            "runs worked": (self.runs, self.recorded),
            "worked runs that succeeded": (self.runs, self.succeeded),
            "worked sessions whose chain is intact": (self.runs, self.intact),
            "events of worked runs": (self.events, self.events_recorded),
            "workers killed": (self.kills_wanted, self.kills),
            "effects executed at the provider": (self.expected, self.executed),
            "calls executed twice": (0, self.executed_twice),
            "effects recorded as succeeded": (self.expected, self.effects_succeeded),
        }
        return [f"{what}: expected {want}, found {got}" for what, (want, got) in checks.items() if want != got]


class NotFinished(RuntimeError):
    """The runs did not come to an end in time."""


def expected_effects(runs: list[AgentRun]) -> int:
    """How many calls of the runs have an effect."""
    return sum(has_effect(call["name"]) for run in runs for event in run.events for call in tool_calls(event))


def survive(
    plan: Plan, auditor_url: str, *, workers: int, kills: int, advance: Callable[[int], None] = lambda _: None
) -> Survived:
    """Let processes work all runs and kill so many of them; `advance` hears of events as they are recorded."""
    events = sum(len(run.events) for run in plan.runs)
    # A short file is over before many could be killed.
    result = Survived(len(plan.runs), events, expected_effects(plan.runs), min(kills, events // 4))
    started = time.perf_counter()
    with psycopg.connect(auditor_url, autocommit=True) as auditor, _Workforce(plan, workers) as workforce:
        _watch(auditor, workforce, result, advance)
    result.seconds = time.perf_counter() - started
    with psycopg.connect(auditor_url) as auditor:
        (
            result.recorded,
            result.succeeded,
            result.resumes,
            result.intact,
            result.events_recorded,
            result.effects_succeeded,
            result.from_ledger,
            result.resolved,
        ) = _row(auditor, FOUND, tenant=plan.tenant)
    acts = Counter(act["call"] for act in Provider(plan.provider).acts())
    result.executed = acts.total()
    result.executed_twice = sum(times > 1 for times in acts.values())
    return result


def _watch(
    auditor: psycopg.Connection[Any], workforce: _Workforce, result: Survived, advance: Callable[[int], None]
) -> None:
    """Kill whenever the log has grown to one of the random lengths; return when every run is settled."""
    chance = random.Random(_KILLING_SEED)
    when = sorted(chance.sample(range(1, result.events), result.kills_wanted))
    seen, latest = 0, time.monotonic()
    while True:
        recorded, settled = _row(auditor, PROGRESS, tenant=KILLED_TENANT)
        if recorded > seen:
            advance(recorded - seen)
            seen, latest = recorded, time.monotonic()
        while when and seen >= when[0]:
            when.pop(0)
            workforce.kill_one(chance)
            result.kills += 1
        if settled == result.runs:
            return
        if time.monotonic() - latest > _PATIENCE:
            raise NotFinished(
                f"nothing was recorded for {_PATIENCE:.0f} s; {settled} of {result.runs} runs are settled"
            )
        time.sleep(0.05)


class _Workforce:
    """So many worker processes; who is killed is replaced."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._plan = plan
        self._hired = 0
        self._number = number
        # Loads everything once; each worker is forked from that, a fresh process all the same.
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload([work.__module__])
        self._at_work: list[tuple[BaseProcess, Connection]] = []

    def __enter__(self) -> _Workforce:
        hired = [self._hire() for _ in range(self._number)]
        for _, worker in hired:
            worker.recv()
        for _, worker in hired:
            worker.send(True)
        self._at_work = hired
        return self

    def __exit__(self, *_: object) -> None:
        for worker, _pipe in self._at_work:
            worker.kill()
        for worker, _pipe in self._at_work:
            worker.join()

    def kill_one(self, chance: random.Random) -> None:
        """SIGKILL: no handler, no last word. Another one is hired."""
        worker, _pipe = self._at_work.pop(chance.randrange(len(self._at_work)))
        worker.kill()
        worker.join()
        process, pipe = self._hire()
        pipe.recv()
        pipe.send(True)
        self._at_work.append((process, pipe))

    def _hire(self) -> tuple[BaseProcess, Connection]:
        self._hired += 1
        ours, theirs = self._context.Pipe()
        worker = self._context.Process(target=work, args=(self._plan, self._hired, theirs), daemon=True)
        worker.start()
        theirs.close()
        return worker, ours
