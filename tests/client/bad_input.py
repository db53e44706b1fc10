"""For each parameter of the client, by its name, what can't be meant."""

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from inspect import Parameter, getmembers, isfunction, signature
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from durable_pg.types import RunOutcome, Session

UID = UUID(int=7)
NOW = datetime.now(timezone.utc)
SESSION = Session(UID, "support", "U1", "s-1", {}, 0, 0, NOW, NOW, None, "open")
RUN = RunOutcome(UID, 1, "running", "started", None, None, None, NOW)

NAMES = (7, True, b"name", ["name"], UID, "nul\0", "half \ud800")
JSON = (float("nan"), b"bytes", {1: "one"}, {"set"}, {"deep": [object()]})
# Refused before they are sent. None is among them wherever a parameter has no default.
UNSENDABLE: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("tenant_id", "user_id", "app_name", "session_id", "author", "invocation_id"), NAMES),
    **dict.fromkeys(("event_id", "trigger", "reason", "status", "worker", "tool", "intent", "scope"), NAMES),
    "replay_class": NAMES,
    "session": (7, True, UID.bytes, "s-1", "", "nul\0", "half \ud800", RUN, [SESSION]),
    "run": (7, True, UID.bytes, "inv-1", "", "nul\0", "half \ud800", SESSION, [RUN]),
    "effect": (7, True, UID.bytes, "evt-1", "", "nul\0", "half \ud800", RUN, [UID]),
    **dict.fromkeys(("content", "input", "result", "error"), JSON),
    **dict.fromkeys(("state", "metadata", "state_delta", "args", "evidence", "tools"), (*JSON, [1], "text", 7, True)),
    # Of a session a dict, of a checkpoint any JSON.
    "save_checkpoint.state": JSON,
    "record_step.state": JSON,
    "events": (
        *(None, 7, True, "text", {"author": "agent"}, [7], [None], [{}], [{"content": 1}]),
        *([{"author": "agent", "content": {1}}], [{"author": "agent", "occurred_at": datetime(2026, 1, 2)}]),  # noqa: DTZ001
    ),
    "finished": (None, 7, "text", [7], [{}], [{"effect_uid": UID}], [{"effect_uid": "evt-1", "status": "failed"}]),
    **dict.fromkeys(("lease", "provider_dedupes_for"), (7, "1 minute", True, timedelta.max)),
    **dict.fromkeys(
        ("occurred_at", "after_time", "as_of"),
        (
            datetime(2026, 1, 2),  # noqa: DTZ001  # naive, that is the point
            *(date(2026, 1, 2), "2026-01-02T00:00:00Z", 1700000000.0, True),
            datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))),
            datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
        ),
    ),
    **dict.fromkeys(
        (
            *("expected_revision", "attempt", "after_seq", "latest", "max_attempts", "step", "ordinal"),
            *("schema_version", "max_runs"),
        ),
        (True, "1", 1.0, b"1", 2**31, -(2**31), 10**5000),
    ),
    **dict.fromkeys(("repeatable", "args_may_differ"), (None, 0, 1, "yes")),
    **dict.fromkeys(
        ("extra_tool_calls", "tools_executed"),
        ("mail", b"mail", {"mail"}, {"mail": 1}, 7, True, [7], [None], ["nul\0"], ["mail", "half \ud800"], [["mail"]]),
    ),
    "url": (7, True, b"postgresql://db/shop", "", "mysql://db/shop", "postgresql://db:port/shop"),
    "min_size": (None, "1", 1.0, True, -1),
    "max_size": (None, "1", 1.0, True, -1, 0),
    "timeout": (None, "1", True, 0, -1.0, float("nan")),
}
# Sent, and refused by the database.
TOO_LONG = "x" * 513
UNFIT_NAMES = ("", " ", "\t", " padded", TOO_LONG)
UNFIT: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("tenant_id", "user_id", "app_name", "session_id", "author", "trigger"), UNFIT_NAMES),
    **dict.fromkeys(("worker", "tool", "intent"), UNFIT_NAMES),
    # An empty one counts as none.
    **dict.fromkeys(("invocation_id", "event_id"), UNFIT_NAMES[1:]),
    "status": ("", "done", "running"),
    **dict.fromkeys(("scope", "replay_class"), ("", "everybody")),
    **dict.fromkeys(("latest", "step", "ordinal", "schema_version"), (-1,)),
    "max_attempts": (0, -1),
    "max_runs": (0, -1, 10_001),
    "cancel_run.reason": ("", " ", "x" * 2001),
    **dict.fromkeys(("lease", "provider_dedupes_for"), (timedelta(0), timedelta(seconds=-1))),
    "evidence": ({}, {"channel": "", "seen": "it"}, {"channel": "API"}, {"channel": "API", "seen": 7}),
    "events": ([{"author": "agent", "unknown": 1}],),
    "finished": ([{"effect_uid": UID, "status": "failed", "unknown": 1}],),
    # Of a state, and none is given.
    "record_step.schema_version": (),
    **dict.fromkeys(("extra_tool_calls", "tools_executed"), ([""], [" "])),
}
# What is given besides: enough for a call that could be sent.
OTHERS: dict[str, Any] = {
    "tenant_id": "T1",
    "user_id": "U1",
    "app_name": "support",
    "session": SESSION,
    "run": RUN,
    "author": "agent",
    "invocation_id": "inv-1",
    "status": "failed",
    "effect": UID,
    "tool": "refund",
    "step": 1,
    "state": {"n": 1},
    "evidence": {"channel": "API", "seen": "nothing"},
    "tools": {"refund": "keyed"},
    "replay_class": "keyed",
    "reason": "it is",
}


class Bad(NamedTuple):
    """One argument of one method, and the others that the method needs."""

    method: str
    parameter: str
    value: Any
    others: dict[str, Any]


def methods_of(*owners: type) -> dict[str, Callable[..., Any]]:
    """Return what a user may call on objects of these classes."""
    return {
        name: method
        for owner in owners
        for name, method in getmembers(owner, isfunction)
        if not name.startswith("_") and len(signature(method).parameters) > 1
    }


def parameters_of(method: Callable[..., Any]) -> list[Parameter]:
    return [parameter for parameter in signature(method).parameters.values() if parameter.name not in ("self", "cls")]


def bad_arguments(methods: dict[str, Callable[..., Any]], values: dict[str, tuple[Any, ...]]) -> list[list[Bad]]:
    """Return for each parameter of every method its bad values."""
    every = [bad for name, method in methods.items() for bad in _bad_arguments_of(name, method, values)]
    return [list(of_one) for _, of_one in groupby(every, key=lambda bad: (bad.method, bad.parameter))]


def values_of(method: str, parameter: str, values: dict[str, tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the bad values of a parameter, which one method may take otherwise than the others."""
    return values.get(f"{method}.{parameter}", values.get(parameter, ()))


def _bad_arguments_of(name: str, method: Callable[..., Any], values: dict[str, tuple[Any, ...]]) -> Iterator[Bad]:
    parameters = parameters_of(method)
    needed = {each.name: OTHERS[each.name] for each in parameters if each.default is Parameter.empty}
    for parameter in parameters:
        # A checkpoint may be of nothing: null is JSON.
        required = values is UNSENDABLE and parameter.default is Parameter.empty and parameter.annotation != "Any"
        for value in (*((None,) if required else ()), *values_of(name, parameter.name, values)):
            yield Bad(name, parameter.name, value, {**needed, parameter.name: value})


def name_of(of_one: list[Bad]) -> str:
    """Name a test after the parameter."""
    return f"{of_one[0].method}-{of_one[0].parameter}"
