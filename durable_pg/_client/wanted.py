"""An effect that a run asks for: what is asked, how to execute it, and how to read what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from durable_pg._client import codec
from durable_pg._client.holding import described
from durable_pg.effects import Failed, Succeeded
from durable_pg.errors import EffectDiverged, EffectFailed, EffectInFlight, EffectTimedOut, EffectUnverified
from durable_pg.types import BegunEffect, Effect, IntentScope

_RESOLVE = (
    "Find out what became of it, then resolve_effect(), or durable-pg effects resolve; verify= lets a program do that."
)
_DIVERGED = (
    "Ask first for the earlier call as it was, which gives its result (or says that it is unverified), and tell the "
    "model; what it wants besides comes after that, at a later step. A stable intent= makes rewording harmless."
)


@dataclass(frozen=True)
class Wanted:
    """One call of a tool. `failed_on`: exceptions that mean that it certainly did not act."""

    tool: str
    args: Mapping[str, Any] | None
    step: int
    ordinal: int
    intent: str | None
    scope: IntentScope | None
    args_may_differ: bool
    provider_dedupes_for: timedelta | None
    call: Callable[[str], Any]
    verify: Callable[[str], Any] | None
    failed_on: tuple[type[Exception], ...]
    timeout: float | None

    def certainly_failed(self, error: BaseException) -> bool:
        """Whether the tool's exception says that nothing happened. That we stopped waiting never does."""
        if isinstance(error, EffectFailed):
            # One that another effect has raised, inside this one's call, says nothing of this one.
            return error.effect_uid is None
        return isinstance(error, self.failed_on) and not isinstance(error, EffectTimedOut)


def failures(failed_on: type[Exception] | tuple[type[Exception], ...]) -> tuple[type[Exception], ...]:
    """The exception types given. Raises TypeError for those that say nothing about the tool, such as a cancellation."""
    kinds = failed_on if isinstance(failed_on, tuple) else (failed_on,)
    for kind in kinds:
        given: object = kind
        if not (isinstance(given, type) and issubclass(given, Exception)):
            raise TypeError(f"failed_on takes subclasses of Exception, not {kind!r}")
    return kinds


def recorded_error(error: BaseException) -> Any:
    """What is recorded of an exception: what EffectFailed was given, if it can be, else its type and message."""
    if isinstance(error, EffectFailed) and error.error is not None:
        try:
            codec.encode(error.error, "error")
        except codec.NotStorable:
            return described(error)
        return error.error
    return described(error)


def evidence(found: Succeeded | Failed) -> dict[str, Any]:
    """What resolve_effect is given, of a verifier's answer."""
    told: dict[str, Any] = {"channel": found.channel, "seen": found.seen}
    if isinstance(found, Failed) and found.error is not None:
        told["error"] = found.error
    return told


def unverified(effect: BegunEffect | Effect, why: str) -> EffectUnverified:
    said = effect.error.get("message") if isinstance(effect.error, dict) else None
    return EffectUnverified(
        f"nobody knows whether {effect.tool} happened: {why}",
        detail=f"its call ended with: {said}" if said else "",
        hint=_RESOLVE,
        effect=effect,
        names=_names(effect),
    )


def not_executed(effect: BegunEffect) -> Exception:
    """The error for an effect that is not to be executed now."""
    if effect.outcome == "in_flight":
        return EffectInFlight(
            f"{effect.tool} is being executed at this moment",
            detail=f"its worker holds it until {effect.lease_expires_at}",
            hint="Ask again later: then its result is there, or it is unverified.",
            effect=effect,
            names=_names(effect),
        )
    if effect.outcome == "diverged":
        return EffectDiverged(
            f"an earlier attempt of this run has called {effect.tool} here, and this one asks for another call",
            detail=f"effect {effect.effect_uid}, {effect.status}, step {effect.step}, ordinal {effect.ordinal}",
            hint=_DIVERGED,
            effect=effect,
            names=_names(effect),
        )
    return unverified(effect, "an attempt to execute it was interrupted")


def _names(effect: BegunEffect | Effect) -> dict[str, str]:
    return {"effect_uid": str(effect.effect_uid), "tool": effect.tool}
