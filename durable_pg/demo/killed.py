"""One worker killed at the worst moment: the provider has acted, and nobody has written it down."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from durable_pg import Durable, Identity
from durable_pg.demo.working import Provider
from durable_pg.tools import Failed

_LEASE = timedelta(seconds=1)
_PATIENCE = 30.0
ORDER = {"order": 7, "amount": "20 EUR"}
INTENT = "refund:order-7"


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
        run = me.start_run(session, "turn-1", worker="w-1", lease=_LEASE)
        begun = me.begin_effect(run, "refund", ORDER, intent=INTENT)
        provider.act(begun.idempotency_key, INTENT)
        time.sleep(_PATIENCE)


def _go_on(me: Identity, session: Any, provider: Provider, found: Killed) -> None:
    run = me.start_run(session, "turn-1", worker="w-2", lease=_LEASE)
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
