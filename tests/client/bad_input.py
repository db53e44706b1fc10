"""For each parameter of the client, by its name, what can't be meant."""

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from inspect import Parameter, getmembers, isfunction, signature
from typing import Any, NamedTuple
from uuid import UUID

from durable_pg.types import RunOutcome, Session

UID = UUID(int=7)
NOW = datetime.now(timezone.utc)
SESSION = Session(UID, "support", "U1", "s-1", {}, 0, 0, NOW, NOW, None, "open")
RUN = RunOutcome(UID, 1, "running", "started", None, None, None)

NAMES = (7, True, b"name", ["name"], UID, "nul\0", "half \ud800")
JSON = (float("nan"), b"bytes", {1: "one"}, {"set"}, {"deep": [object()]})
# Refused before they are sent. None is among them wherever a parameter has no default.
UNSENDABLE: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("tenant_id", "user_id", "app_name", "session_id", "author", "invocation_id"), NAMES),
    **dict.fromkeys(("event_id", "trigger", "reason", "status"), NAMES),
    "session": (7, True, UID.bytes, "s-1", "", "nul\0", "half \ud800", RUN, [SESSION]),
    "run": (7, True, UID.bytes, "inv-1", "", "nul\0", "half \ud800", SESSION, [RUN]),
    **dict.fromkeys(("content", "input", "result", "error"), JSON),
    **dict.fromkeys(("state", "metadata", "state_delta"), (*JSON, [1], "text", 7, True)),
    **dict.fromkeys(
        ("occurred_at", "after_time"),
        (
            datetime(2026, 1, 2),  # noqa: DTZ001  # naive, that is the point
            *(date(2026, 1, 2), "2026-01-02T00:00:00Z", 1700000000.0, True),
            datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))),
            datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
        ),
    ),
    **dict.fromkeys(
        ("expected_revision", "attempt", "after_seq", "latest"), (True, "1", 1.0, b"1", 2**31, -(2**31), 10**5000)
    ),
    "repeatable": (None, 0, 1, "yes"),
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
    # An empty one counts as none.
    **dict.fromkeys(("invocation_id", "event_id"), UNFIT_NAMES[1:]),
    "status": ("", "done", "running"),
    "latest": (-1,),
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


def bad_arguments(methods: dict[str, Callable[..., Any]], values: dict[str, tuple[Any, ...]]) -> list[Bad]:
    """Return every method with every bad value of every parameter."""
    return [bad for name, method in methods.items() for bad in _bad_arguments_of(name, method, values)]


def _bad_arguments_of(name: str, method: Callable[..., Any], values: dict[str, tuple[Any, ...]]) -> Iterator[Bad]:
    parameters = parameters_of(method)
    needed = {each.name: OTHERS[each.name] for each in parameters if each.default is Parameter.empty}
    for parameter in parameters:
        required = values is UNSENDABLE and parameter.default is Parameter.empty
        for value in (*((None,) if required else ()), *values.get(parameter.name, ())):
            yield Bad(name, parameter.name, value, {**needed, parameter.name: value})


def name_of(bad: Bad) -> str:
    """Name a test after it, in ASCII and not at length."""
    return f"{bad.method}-{bad.parameter}-{ascii(bad.value)[:24] if not isinstance(bad.value, int | UUID) else ''}"
