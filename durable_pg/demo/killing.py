"""Real agent runs, worked by processes that are killed at random and replaced, until every run is settled."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import psycopg

from durable_pg.demo.recording import AgentRun
from durable_pg.demo.working import Plan, Provider, has_effect, tool_calls, work

TENANT = "airline-two"
_SEED = 11
_PATIENCE = 120.0

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
        ) = _row(auditor, FOUND, plan.tenant)
    acts = Counter(act["call"] for act in Provider(plan.provider).acts())
    result.executed = acts.total()
    result.executed_twice = sum(times > 1 for times in acts.values())
    return result


def _watch(
    auditor: psycopg.Connection[Any], workforce: _Workforce, result: Survived, advance: Callable[[int], None]
) -> None:
    """Kill whenever the log has grown to one of the random lengths; return when every run is settled."""
    chance = random.Random(_SEED)
    when = sorted(chance.sample(range(1, result.events), result.kills_wanted))
    seen, latest = 0, time.monotonic()
    while True:
        recorded, settled = _row(auditor, PROGRESS, TENANT)
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


def _row(connection: psycopg.Connection[Any], query: str, tenant: str) -> Any:
    return connection.execute(query.encode(), {"tenant": tenant}).fetchone()
