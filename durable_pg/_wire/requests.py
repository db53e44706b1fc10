"""What run() and effect() were asked for, and what the database's answers mean for it."""

from __future__ import annotations

import inspect
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from durable_pg._wire import json_text
from durable_pg._wire.values import span
from durable_pg.checkpoints import CheckpointUpgrades
from durable_pg.errors import (
    EffectDiverged,
    EffectFailed,
    EffectInFlight,
    EffectTimedOut,
    EffectUnverified,
    RunAwaiting,
    RunBusy,
    RunSettled,
)
from durable_pg.types import AnySession, BegunEffect, Effect, RunOutcome

_RESOLVE = (
    "Find out what became of it, then resolve_effect(), or durable-pg effects resolve; verify= lets a program do that."
)
_DIVERGED = (
    "Ask first for the earlier call as it was, which gives its result (or says that it is unverified), and tell the "
    "model; what it wants besides comes after that, at a later step. A stable intent= makes rewording harmless."
)
# A message may be a whole page of HTML.
_LONGEST_MESSAGE = 2000


@dataclass(frozen=True)
class RunRequest:
    """The arguments of run(). `patience`: seconds that a last word may take when the caller is being cancelled."""

    session: AnySession
    invocation_id: str
    message: Any
    input: Any
    trigger: str
    worker: str
    lease: timedelta
    max_attempts: int | None
    upgrades: CheckpointUpgrades
    patience: float

    def __post_init__(self) -> None:
        # A renewal is timed by it, before the database has seen it.
        span("lease", self.lease)


def this_worker() -> str:
    """Name this process, for people who read who holds a lease."""
    return f"{socket.gethostname()}:{os.getpid()}"


def refuse_unless_held(begun: RunOutcome, request: RunRequest) -> None:
    """Raise RunSettled, RunBusy or RunAwaiting unless the run is this worker's now."""
    if begun.outcome in {"started", "resumed"}:
        return
    facts: dict[str, Any] = {
        "call": "start_run",
        "names": {"run_uid": str(begun.run_uid), "invocation_id": request.invocation_id},
        "run": begun,
    }
    if begun.outcome == "busy":
        raise RunBusy(
            "the run is executed by somebody else",
            detail=f"its lease lasts until {begun.lease_expires_at}, unless it is renewed",
            hint="Leave it alone, and look again after that.",
            **facts,
        )
    if begun.outcome == "awaiting":
        raise RunAwaiting("the run waits for a person's decision", hint="Run it again after that.", **facts)
    raise RunSettled(
        f"the run has {begun.status}",
        hint="Its result and error are in .run; a new turn gets a new invocation_id.",
        **facts,
    )


@dataclass(frozen=True)
class EffectRequest:
    """One call of a tool. `begin`: asks the ledger. `failed_on`: exceptions that mean that it certainly did not act."""

    begin: Callable[[], Any]
    has_intent: bool
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


def check_takes(function: object, takes: str | None = None) -> None:
    """Raise TypeError for what can't be called, or not with the one argument that `takes` names."""
    if not callable(function):
        raise TypeError(f"a function is needed, not {type(function).__name__}")
    if takes is None:
        return
    try:
        inspect.signature(function).bind(takes)
    except TypeError:
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(f"{name} has to take one argument, the {takes}") from None
    except ValueError:
        pass  # some of C's functions have no signature


def failures(failed_on: type[Exception] | tuple[type[Exception], ...]) -> tuple[type[Exception], ...]:
    """The exception types given. Raises TypeError for those that say nothing about the tool, such as a cancellation."""
    kinds = failed_on if isinstance(failed_on, tuple) else (failed_on,)
    for kind in kinds:
        given: object = kind
        if not (isinstance(given, type) and issubclass(given, Exception)):
            raise TypeError(f"failed_on takes subclasses of Exception, not {kind!r}")
    return kinds


def described(error: BaseException) -> dict[str, Any]:
    """What is recorded of an error: its type and what it says."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - an error's own __str__ may raise anything
        message = ""
    return {"type": type(error).__qualname__, "message": str.__str__(message)[:_LONGEST_MESSAGE]}


def recorded_error(error: BaseException) -> Any:
    """What is recorded of an exception: what EffectFailed was given, if it can be, else its type and message."""
    if isinstance(error, EffectFailed) and error.error is not None:
        try:
            json_text.encode(error.error, "error")
        except json_text.NotStorable:
            return described(error)
        return error.error
    return described(error)


def timed_out(timeout: float) -> EffectTimedOut:
    return EffectTimedOut(f"no answer within {timeout} s", hint="Whether it had its effect is unknown: verify it.")


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
