"""The calls of the SQL interface without any I/O: what is sent, and what is made of the rows that come back.

The parameters are those of the SQL functions, whose contract is in docs/functions.md. Here is what all calls have in
common, and those about sessions; run_calls.py, effect_calls.py and step_calls.py have the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar

from durable_pg._client import parameters as given
from durable_pg._client import rows
from durable_pg._client.rows import Row
from durable_pg.errors import BadInput
from durable_pg.types import AppendedEvent, Event, Session, State, Verification

T = TypeVar("T")
P = ParamSpec("P")

# Which parameters are names; all others are content or settings and never leave a call but for the database.
_NAMES = (
    *("tenant_id", "user_id", "app_name", "session_id", "session_uid", "run_uid", "invocation_id", "event_id"),
    *("effect_uid", "tool", "step"),
)


class Who(NamedTuple):
    """The identity of a call."""

    tenant_id: str
    user_id: str


class Nobody(NamedTuple):
    """The identity of a call about all tenants."""


W = TypeVar("W", Who, Nobody)


@dataclass(frozen=True)
class Call(Generic[T]):
    """One statement of queries.sql. `repeatable`: a second time it changes nothing and the answer says so."""

    name: str
    parameters: Mapping[str, Any]
    read: Callable[[Sequence[Row]], T]
    repeatable: bool
    writes: bool

    @property
    def names(self) -> dict[str, str]:
        """The identifiers it was given, for errors."""
        return {name: str(self.parameters[name]) for name in _NAMES if self.parameters.get(name) is not None}


def identify(tenant_id: str, user_id: str) -> Who:
    return Who(given.identifier("tenant_id", tenant_id), given.identifier("user_id", user_id))


def named(build: Callable[Concatenate[W, P], Call[T]]) -> Callable[Concatenate[W, P], Call[T]]:
    """What is refused before anything is sent says which call it was meant for, as the database's refusals do."""

    @wraps(build)
    def checked(who: W, /, *args: P.args, **kwargs: P.kwargs) -> Call[T]:
        try:
            return build(who, *args, **kwargs)
        except BadInput as error:
            error.call, error.names = build.__name__, who._asdict()
            raise

    return checked


@named
def open_session(who: Who, app_name: str, session_id: str | None, state: Mapping[str, Any] | None) -> Call[Session]:
    parameters = {
        "app_name": given.identifier("app_name", app_name),
        "session_id": given.optional_identifier("session_id", session_id),
        "state": given.optional_object("state", state),
    }
    # Without a name each call makes another session.
    return writing("open_session", who, parameters, Session, repeatable=session_id is not None)


@named
def close_session(who: Who, session: object, reason: str | None) -> Call[Session]:
    parameters = {"session_uid": given.session_uid(session), "reason": given.optional_text("reason", reason)}
    return writing("close_session", who, parameters, Session, repeatable=True)


@named
def list_sessions(who: Who, app_name: str | None) -> Call[list[Session]]:
    parameters = {"app_name": given.optional_identifier("app_name", app_name)}
    return listing("list_sessions", who, parameters, Session)


@named
def get_state(who: Who, app_name: str | None, session: object) -> Call[State]:
    parameters = {
        "app_name": given.optional_identifier("app_name", app_name),
        "session_uid": given.optional_session_uid(session),
    }
    return looking("get_state", who, parameters, State)


@named
def append_event(
    who: Who,
    session: object,
    author: str,
    content: Any,
    *,
    invocation_id: str | None,
    event_id: str | None,
    metadata: Mapping[str, Any] | None,
    state_delta: Mapping[str, Any] | None,
    occurred_at: datetime | None,
    repeatable: bool,
    extra_tool_calls: Sequence[str] | None,
    expected_revision: int | None,
    attempt: int | None,
) -> Call[AppendedEvent]:
    parameters = {
        "session_uid": given.session_uid(session),
        "author": given.identifier("author", author),
        "content": given.optional_json("content", content),
        "invocation_id": given.optional_identifier("invocation_id", invocation_id),
        "event_id": given.optional_identifier("event_id", event_id),
        "metadata": given.optional_object("metadata", metadata),
        "state_delta": given.optional_object("state_delta", state_delta),
        "occurred_at": given.optional_time("occurred_at", occurred_at),
        "repeatable": given.boolean("repeatable", repeatable),
        "extra_tool_calls": given.optional_names("extra_tool_calls", extra_tool_calls),
        "expected_revision": given.optional_integer("expected_revision", expected_revision),
        "attempt": given.optional_integer("attempt", attempt),
    }
    # An empty event_id counts as none. An opening message is known without one too, but only the database can tell it.
    return writing("append_event", who, parameters, AppendedEvent, repeatable=bool(event_id))


@named
def read_events(
    who: Who, session: object, *, after_seq: int | None, latest: int | None, after_time: datetime | None
) -> Call[list[Event]]:
    parameters = {
        "session_uid": given.session_uid(session),
        "after_seq": given.optional_integer("after_seq", after_seq),
        "latest": given.optional_integer("latest", latest),
        "after_time": given.optional_time("after_time", after_time),
    }
    return listing("read_events", who, parameters, Event)


@named
def verify_session(who: Who, session: object) -> Call[Verification]:
    parameters = {"session_uid": given.session_uid(session)}
    return looking("verify_session", who, parameters, Verification)


def writing(name: str, who: Who | Nobody, parameters: Mapping[str, Any], kind: type[T], *, repeatable: bool) -> Call[T]:
    """A call that writes and gives one row."""
    read = _reader(kind)
    return Call(name, {**who._asdict(), **parameters}, lambda found: read(found[0]), repeatable, writes=True)


def looking(name: str, who: Who, parameters: Mapping[str, Any], kind: type[T]) -> Call[T]:
    """A call that writes nothing and gives one row."""
    return replace(writing(name, who, parameters, kind, repeatable=True), writes=False)


def finding(name: str, who: Who, parameters: Mapping[str, Any], kind: type[T]) -> Call[T | None]:
    """A call that writes nothing and gives one row or none."""
    read = _reader(kind)
    parameters = {**who._asdict(), **parameters}
    return Call(name, parameters, lambda found: read(found[0]) if found else None, True, writes=False)


def listing(name: str, who: Who | Nobody, parameters: Mapping[str, Any], kind: type[T]) -> Call[list[T]]:
    """A call that writes nothing and gives any number of rows."""
    return replace(writing_several(name, who, parameters, kind), repeatable=True, writes=False)


def writing_several(name: str, who: Who | Nobody, parameters: Mapping[str, Any], kind: type[T]) -> Call[list[T]]:
    """A call that writes and gives any number of rows; a second time it changes nothing."""
    read = _reader(kind)
    return Call(name, {**who._asdict(), **parameters}, lambda found: [read(row) for row in found], True, writes=True)


_READERS: dict[type[Any], Callable[[Row], Any]] = {}


def _reader(kind: type[T]) -> Callable[[Row], T]:
    if kind not in _READERS:
        _READERS[kind] = rows.reader(kind)
    return _READERS[kind]
