"""The worker processes of the demo, and what they work with.

One works real agent runs as an agent would, until somebody kills it. Another is killed at the worst moment: the
provider has acted, and nobody has written it down.

What is done outside is a line in a file, written by one system call: it survives the process, and nobody can take it
back. So the file is the provider, and tells how often each call really happened.
"""

from __future__ import annotations

import json
import random
import signal
import time
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from durable_pg import Durable, Identity, Run
from durable_pg.demo.recording import APP, AgentRun, Message
from durable_pg.errors import LeaseLost, RunBusy, RunSettled
from durable_pg.tools import Failed, Succeeded
from durable_pg.types import NewEvent

WORK = "turn-1"
LEASE = timedelta(seconds=3)
# A provider is a network away, seconds each way: workers die before it has heard, and before they have.
_LATENCY = 0.02
_LOOKS_ONLY = ("get_", "search_", "list_", "calculate", "think")
# Of the run whose worker is killed between the provider's act and its record.
_SHORT_LEASE = timedelta(seconds=1)
_PATIENCE = 30.0
ORDER = {"order": 7, "amount": "20 EUR"}
INTENT = "refund:order-7"


@dataclass(frozen=True)
class Plan:
    """What every worker is given."""

    app_url: str
    maintainer_url: str
    tenant: str
    provider: Path
    runs: list[AgentRun]


def has_effect(tool: str) -> bool:
    """Whether calling it again could do something twice; unknown tools have an effect."""
    return not tool.startswith(_LOOKS_ONLY)


def tool_calls(event: Message) -> list[dict[str, Any]]:
    """The functions that a chat message calls."""
    return [call["function"] for call in event.content.get("tool_calls") or []]


class Provider:
    """Does things by appending a line, and knows what it has done."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def act(self, key: str, call: str) -> dict[str, str]:
        """Do it, whether or not it was done before."""
        time.sleep(_LATENCY)
        with self._file.open("ab", buffering=0) as log:
            log.write(json.dumps({"key": key, "call": call}).encode() + b"\n")
        time.sleep(_LATENCY)
        return {"done": call}

    def acts(self) -> list[dict[str, str]]:
        """All that was done."""
        # What stands after the last line's end is being written at this moment.
        return [json.loads(line) for line in self._file.read_bytes().split(b"\n")[:-1]] if self._file.exists() else []

    def ask(self, key: str) -> Succeeded | Failed:
        """Whether it was done under this key: the other channel, for what a killed worker has left open."""
        for act in self.acts():
            if act["key"] == key:
                return Succeeded({"done": act["call"]}, channel="the provider's log", seen=f"a line for {act['call']}")
        return Failed(channel="the provider's log", seen="no line with this key")


def work(plan: Plan, seed: int, parent: Connection) -> None:
    """Take up what was left lying, then what nobody has begun; never returns. Says when it is ready, and waits."""
    # A terminal's Ctrl-C reaches every process of the group; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    chance = random.Random(seed)
    unbegun = list(range(len(plan.runs)))
    chance.shuffle(unbegun)
    with Durable.from_url(plan.app_url, max_size=2) as app, Durable.from_url(plan.maintainer_url, max_size=1) as cron:
        parent.send(True)
        parent.recv()
        while True:
            waiting = cron.maintainer().list_resumable(max_runs=50)
            if waiting:
                found = chance.choice(waiting)
                me = app.act_as(found.tenant_id, found.user_id)
                (row,) = [run for run in me.list_runs(found.session_uid) if run.run_uid == found.run_uid]
                _try(plan, me, row.input["place"])
            elif unbegun:
                place = unbegun.pop()
                _try(plan, app.act_as(plan.tenant, plan.runs[place].user_id), place)
            else:
                time.sleep(LEASE.total_seconds() / 10)


def _try(plan: Plan, me: Identity, place: int) -> None:
    found = plan.runs[place]
    session = me.open_session(APP, found.session_id)
    opening = found.events[0].content if found.events[0].is_user_turn else None
    try:
        with me.run(session, WORK, message=opening, input={"place": place}, lease=LEASE) as run:
            _Agent(me, run, session.session_uid, found, place, Provider(plan.provider)).go_on()
            run.result = {"events": len(found.events)}
    except (RunBusy, RunSettled, LeaseLost):
        # Another worker has it, or has finished it.
        pass


@dataclass
class _Agent:
    me: Identity
    run: Run
    session: Any
    found: AgentRun
    place: int
    provider: Provider

    def go_on(self) -> None:
        """Do the messages one by one, from where an earlier attempt has got to."""
        begin = self.run.state["next"] if self.run.state else int(self.found.events[0].is_user_turn)
        for step in range(begin, len(self.found.events)):
            event = self.found.events[step]
            said = NewEvent(author=event.author, content=event.content, event_id=f"event-{step + 1}")
            if event.is_user_turn:
                turn = sum(earlier.is_user_turn for earlier in self.found.events[: step + 1])
                self.me.append_event(self.session, "user", event.content, invocation_id=f"turn-{turn}")
            elif calls := tool_calls(event):
                self.run.append_event(event.author, event.content, event_id=said["event_id"])
                for ordinal, call in enumerate(calls):
                    self._call(step, ordinal, call)
            done = [] if event.is_user_turn or tool_calls(event) else [said]
            self.run.record_step(step, events=done, state={"next": step + 1})

    def _call(self, step: int, ordinal: int, call: dict[str, Any]) -> None:
        if not has_effect(call["name"]):
            return
        name = f"{self.place}/{step}/{ordinal}"
        self.run.effect(
            call["name"],
            step=step,
            ordinal=ordinal,
            args={"arguments": call.get("arguments")},
            call=lambda key: self.provider.act(key, name),
            verify=self.provider.ask,
        )


class Told(NamedTuple):
    """Who asked, what the database answered, and what that was about."""

    who: str
    answer: str
    about: str


@dataclass
class Killed:
    """What was told to whom, and how often the provider acted in the end."""

    told: list[Told] = field(default_factory=list)
    refunds: int = 0

    @property
    def passed(self) -> bool:
        """Whether the refund happened once, and every answer was the right one."""
        answers = [told.answer for told in self.told]
        return self.refunds == 1 and answers == ["execute", "busy", "resumed", "unverified", "resolved", "recorded"]


def kill_one(url: str, tenant: str, user: str, folder: Path) -> Killed:
    """Let a worker die after the provider has acted, then go on as another one."""
    provider = Provider(folder / "provider.log")
    found = Killed()
    with Durable.from_url(url) as durable:
        me = durable.act_as(tenant, user)
        session = me.open_session("shop", "killed")
        worker = get_context("spawn").Process(
            target=refund_and_hang, args=(url, tenant, user, session.session_uid, provider), daemon=True
        )
        worker.start()
        _wait(lambda: bool(provider.acts()))
        worker.kill()
        worker.join()
        found.told.append(Told("attempt 1", "execute", "begin_effect; the provider refunds; SIGKILL"))
        _go_on(me, session.session_uid, provider, found)
    found.refunds = len(provider.acts())
    return found


def refund_and_hang(url: str, tenant: str, user: str, session: Any, provider: Provider) -> None:
    """What the worker that is to be killed does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Durable.from_url(url) as durable:
        me = durable.act_as(tenant, user)
        run = me.start_run(session, "turn-1", worker="w-1", lease=_SHORT_LEASE)
        begun = me.begin_effect(run, "refund", ORDER, intent=INTENT)
        provider.act(begun.idempotency_key, INTENT)
        time.sleep(_PATIENCE)


def _go_on(me: Identity, session: Any, provider: Provider, found: Killed) -> None:
    run = me.start_run(session, "turn-1", worker="w-2", lease=_SHORT_LEASE)
    found.told.append(Told("worker 2", run.outcome, "start_run, until the lease is over"))
    until = time.monotonic() + _PATIENCE
    while run.outcome == "busy" and time.monotonic() < until:
        time.sleep(0.05)
        run = me.start_run(session, "turn-1", worker="w-2", lease=timedelta(minutes=1))
    found.told.append(Told(f"attempt {run.attempt}", run.outcome, "start_run: the run goes on"))
    begun = me.begin_effect(run, "refund", ORDER, intent=INTENT)
    found.told.append(Told("attempt 2", begun.outcome, "begin_effect: nobody knows, so no second call"))
    seen = provider.ask(begun.idempotency_key)
    evidence = {"channel": seen.channel, "seen": seen.seen}
    if isinstance(seen, Failed):
        raise LookupError("the provider does not know what it has done")
    resolved = me.resolve_effect(begun, "succeeded", evidence, result=seen.result)
    found.told.append(Told("attempt 2", str(resolved.outcome), "resolve_effect: the provider's log has it"))
    again = me.begin_effect(run, "refund", ORDER, intent=INTENT)
    found.told.append(Told("attempt 2", again.outcome, "begin_effect: the result is there from now on"))
    me.settle_run(run, "succeeded", result=again.result)


def _wait(happened: Any) -> None:
    until = time.monotonic() + _PATIENCE
    while not happened():
        if time.monotonic() > until:
            raise TimeoutError("the worker did not get to the provider")
        time.sleep(0.02)
