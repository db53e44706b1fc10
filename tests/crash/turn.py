"""The agent: twelve steps, in some of which the model calls tools that must act once, whatever it says."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from durable_pg import Failed, Identity, Run, Succeeded, Unknown
from durable_pg.errors import EffectDiverged, EffectFailed
from durable_pg.types import NewEvent
from tests.crash.model import GOALS, READS, STEPS, Call, Model
from tests.crash.shop import Declined, Json, Shop
from tests.support.calls import said

AGENT = "support_agent"
TRIES = 4


@dataclass
class Turn:
    """One attempt at one order."""

    me: Identity
    run: Run
    order: str
    shop: Shop
    dedupes: bool
    seed: int
    note: Callable[..., None]
    done: dict[str, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = Model(self.order, self.run.attempt, self.seed)
        self.done = dict(self.run.state["done"]) if self.run.state else {}

    def work(self) -> None:
        """Go on after the newest checkpoint, to the end."""
        self._say(f"attempt {self.run.attempt} begins after step {self.run.step}")
        for step in range(self.run.step + 1, STEPS + 1):
            self._step(step)
        self.run.result = {"done": self.done}

    def _step(self, step: int) -> None:
        if step in READS:
            self._say(call={"name": "read", "args": {"what": READS[step]}})
            self._say(self.model.thought(), read=self.shop.read(READS[step]))
        while calls := self.model.calls(step, {goal for goal in GOALS if goal not in self.done}):
            self._say(self.model.thought(), call={"name": calls[0].tool, "args": calls[0].args})
            self._use(step, calls[0])
        state = {"done": self.done}
        if step % 2:
            self._say(self.model.thought())
            self.run.checkpoint(step=step, state=state)
        else:
            event: NewEvent = {"author": AGENT, "content": said(self.model.thought())}
            self.run.record_step(step, events=[event], state=state)

    def _use(self, step: int, call: Call, ordinal: int = 0) -> None:
        """Call a tool, again if it declined; if the ledger says that an earlier attempt called another, that one."""
        for _ in range(TRIES):
            try:
                self.done[call.goal] = self._effect(step, call, ordinal)["number"]
            except EffectDiverged as told:
                self.note("diverged", run=str(self.run.run_uid), attempt=self.run.attempt, goal=call.goal)
                earlier = told.effect
                goal = "mail " + earlier.args["to"] if earlier.tool == "mail" else earlier.tool
                self._use(earlier.step, Call(goal, earlier.tool, earlier.args), earlier.ordinal)
            except EffectFailed:
                self.note("declined", goal=call.goal)
                continue
            return
        self.done[call.goal] = None

    def _effect(self, step: int, call: Call, ordinal: int) -> Json:
        called, verified = [], []

        def act(key: str) -> Json:
            called.append(key)
            what = {"run": str(self.run.run_uid), "attempt": self.run.attempt, "key": key, "goal": call.goal}
            self.note("calling", **what)
            receipt = self.shop.execute(key, call.tool, {"intent": f"{call.goal}:{self.order}", **call.args})
            self.note("called", **what)
            return receipt

        def ask(key: str) -> Succeeded | Failed | Unknown:
            verified.append(key)
            return VERIFY[call.tool](self.shop, key)

        receipt: Json = self.run.effect(
            call.tool,
            step=step,
            args=call.args,
            ordinal=ordinal,
            call=act,
            failed_on=(Declined,),
            verify=ask if call.tool in VERIFY else None,
            **self._keyed(call.tool),
        )
        if not called:
            self.note("verified" if verified else "recorded", goal=call.goal)
        return receipt

    def _keyed(self, tool: str) -> dict[str, Any]:
        """Return what the tool's author knows: that a refund is one whatever the reason given, and so on."""
        if tool == "refund":
            return {"intent": f"refund:{self.order}", "args_may_differ": True}
        if tool == "booking" and self.dedupes:
            return {"provider_dedupes_for": timedelta(hours=1)}
        return {"intent": f"booking:{self.order}"} if tool == "booking" else {}

    def _say(self, text: str | None = None, call: Json | None = None, read: Json | None = None) -> None:
        parts: list[Json] = [{"text": text}] if text else []
        if call:
            parts.append({"function_call": call})
        if read:
            parts.append({"function_response": {"name": "read", "response": read}})
        self.run.append_event(AGENT, {"role": "model", "parts": parts})


def call_off(shop: Shop, key: str) -> Succeeded | Failed:
    """Let the provider say what it did, or promise to do nothing: the answer is certain either way."""
    receipt = shop.call_off(key)
    if receipt:
        return Succeeded(receipt, channel="void", seen=f"receipt {receipt['number']}")
    return Failed({"why": "called off"}, channel="void", seen="never, and it never will be")


def look_up(shop: Shop, key: str) -> Succeeded | Unknown:
    """Take what the provider has seen; what it has not seen may be under way from a worker that only sleeps."""
    receipt = shop.status(key)
    return Succeeded(receipt, channel="status", seen=f"receipt {receipt['number']}") if receipt else Unknown()


# A mail can't be asked for.
VERIFY: dict[str, Callable[[Shop, str], Succeeded | Failed | Unknown]] = {"refund": call_off, "booking": look_up}
