"""What a tool says at its definition, to be called once: `@durable_tool(...)`; and what its verifier answers.

The function stays what it is and may be called as before; run.call() of a run calls it through the ledger.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from functools import partial
from types import ModuleType
from typing import Any, TypeVar

from durable_pg._wire.requests import failures
from durable_pg.types import IntentScope, ReplayClass

__all__ = [
    "DurableTool",
    "Failed",
    "Succeeded",
    "Unknown",
    "declarations",
    "declared_tools",
    "durable_tool",
    "tool_of",
]

F = TypeVar("F", bound=Callable[..., Any])

_ATTRIBUTE = "__durable_tool__"
# How a function asks for the key that its provider is to get, and a verifier for the arguments of the call.
_KEY, _ARGS = "idempotency_key", "args"


@dataclass(frozen=True)
class Succeeded:
    """A verifier's answer: it happened, with this result. `channel`: where it looked; `seen`: what it saw there."""

    result: Any = None
    _: KW_ONLY
    channel: str
    seen: str


@dataclass(frozen=True)
class Failed:
    """A verifier's answer: it certainly did not happen, and won't any more; so it may be executed again."""

    error: Any = None
    _: KW_ONLY
    channel: str
    seen: str


@dataclass(frozen=True)
class Unknown:
    """A verifier's answer: that can't be told (yet)."""


Found = Succeeded | Failed | Unknown


def evidence(found: Succeeded | Failed) -> dict[str, Any]:
    """What resolve_effect is given, of a verifier's answer."""
    told: dict[str, Any] = {"channel": found.channel, "seen": found.seen}
    if isinstance(found, Failed) and found.error is not None:
        told["error"] = found.error
    return told


@dataclass(frozen=True)
class DurableTool:
    """What a decorator has declared of a function."""

    function: Callable[..., Any]
    name: str
    replay_class: ReplayClass
    intent: Callable[[Mapping[str, Any]], str] | None
    scope: IntentScope | None
    args_may_differ: bool
    provider_dedupes_for: timedelta | None
    failed_on: tuple[type[Exception], ...]
    verify: Callable[..., Any] | None
    timeout: float | None

    @property
    def uses_ledger(self) -> bool:
        """Whether a call is begun and recorded: not where nothing happens outside."""
        return self.replay_class != "read_only"

    def asked(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """What effect() of a run is asked for a call with these. Raises TypeError when they don't fit the function."""
        self._check(args)
        return {
            "tool": self.name,
            "args": args,
            "intent": self._intent(args),
            "scope": self.scope,
            "args_may_differ": self.args_may_differ,
            "provider_dedupes_for": self.provider_dedupes_for,
            "call": partial(self.call, args),
            "verify": None if self.verify is None else partial(self._verify, args),
            "failed_on": self.failed_on,
            "timeout": self.timeout,
        }

    def _intent(self, args: Mapping[str, Any]) -> str | None:
        if self.intent is None:
            return None
        intent: object = self.intent(args)
        if not isinstance(intent, str):
            raise TypeError(f"the intent of {self.name} came out as {intent!r}, and has to be a text")
        return intent

    def call(self, args: Mapping[str, Any], key: str) -> Any:
        """Call the function, with the key if it asks for one."""
        return self.function(**args, **({_KEY: key} if _takes(self.function, _KEY) else {}))

    def _check(self, args: Mapping[str, Any]) -> None:
        if _KEY in args and _takes(self.function, _KEY):
            raise TypeError(f"{_KEY} of {self.name} is given by the run, not by its caller")
        key = {_KEY: ""} if _takes(self.function, _KEY) else {}
        try:
            inspect.signature(self.function).bind(**args, **key)
        except TypeError as error:
            raise TypeError(f"these arguments don't fit {self.name}: {error}") from None

    def _verify(self, args: Mapping[str, Any], key: str) -> Any:
        verify = self.verify
        assert verify is not None  # noqa: S101  # asked for only then
        return verify(key, **({_ARGS: args} if _takes(verify, _ARGS) else {}))


def durable_tool(
    name: str | None = None,
    *,
    replay_class: ReplayClass = "effect",
    intent: Callable[[Mapping[str, Any]], str] | None = None,
    scope: IntentScope | None = None,
    args_may_differ: bool = False,
    provider_dedupes_for: timedelta | None = None,
    failed_on: type[Exception] | tuple[type[Exception], ...] = (),
    verify: Callable[..., Any] | None = None,
    timeout: float | None = None,
) -> Callable[[F], F]:
    """Declare what a tool does, for run.call() and `durable-pg tools sync`.

    `name`: without it the function's. `replay_class`: effect, keyed (the provider recognises the idempotency key) or
    read_only (nothing happens outside; it is called without the ledger). `intent`: makes the stable name of what is
    meant out of the arguments. A function with a parameter `idempotency_key` is given the key. `verify(key)` answers
    Succeeded, Failed or Unknown; one with a parameter `args` is given the arguments. The rest is as in run.effect().
    Raises ValueError and TypeError for what can't be meant.
    """
    if replay_class not in {"effect", "keyed", "read_only"}:
        raise ValueError(f"replay_class is effect, keyed or read_only, not {replay_class!r}")
    if callable(name):
        raise TypeError("write @durable_tool(), with parentheses")
    if intent is None and (scope is not None or args_may_differ):
        raise ValueError("scope and args_may_differ are about an intent, and none is given")

    def declare(function: F) -> F:
        tool = DurableTool(
            function=function,
            name=name or function.__name__,
            replay_class=replay_class,
            intent=intent,
            scope=scope,
            args_may_differ=args_may_differ,
            provider_dedupes_for=provider_dedupes_for,
            failed_on=failures(failed_on),
            verify=verify,
            timeout=timeout,
        )
        setattr(function, _ATTRIBUTE, tool)
        return function

    return declare


def tool_of(function: Callable[..., Any]) -> DurableTool:
    """Return what is declared of a function. Raises TypeError when nothing is."""
    tool = getattr(function, _ATTRIBUTE, None)
    if not isinstance(tool, DurableTool):
        name = getattr(function, "__qualname__", function)
        raise TypeError(f"{name!r} is no durable tool: decorate it with @durable_tool, or use effect()")
    return tool


def declared_tools(module: ModuleType) -> list[DurableTool]:
    """Return the tools among a module's names, its own and imported ones, in order of their names.

    Raises ValueError when two of them have one name and different replay classes.
    """
    found: dict[str, DurableTool] = {}
    for value in vars(module).values():
        tool = getattr(value, _ATTRIBUTE, None) if callable(value) else None
        if not isinstance(tool, DurableTool):
            continue
        other = found.setdefault(tool.name, tool)
        if other.replay_class != tool.replay_class:
            raise ValueError(f"two tools of {module.__name__} are called {tool.name} and have different classes")
    return [found[name] for name in sorted(found)]


def declarations(module: ModuleType) -> dict[str, ReplayClass]:
    """Return what declare_tools() takes, of a module's tools."""
    return {tool.name: tool.replay_class for tool in declared_tools(module)}


def _takes(function: Callable[..., Any], parameter: str) -> bool:
    return parameter in inspect.signature(function).parameters
