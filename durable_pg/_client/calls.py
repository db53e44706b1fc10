"""The calls of the SQL interface without any I/O: what is sent, and what is made of the rows that come back.

The parameters are those of the SQL functions, whose contract is in docs/functions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar

from durable_pg._client import parameters as given
from durable_pg._client.rows import Row, reader
from durable_pg.errors import ArgumentInvalid, BadInput
from durable_pg.types import AppendedEvent, Event, Run, RunOutcome, Session, State, Verdict, Verification

T = TypeVar("T")
P = ParamSpec("P")

# Which parameters are names; all others are content or settings and never leave a call but for the database.
_NAMES = ("tenant_id", "user_id", "app_name", "session_id", "session_uid", "run_uid", "invocation_id", "event_id")


_READERS: dict[type[Any], Callable[[Row], Any]] = {
    kind: reader(kind) for kind in (Session, State, AppendedEvent, Event, Verification, RunOutcome, Run, Verdict)
}


class Who(NamedTuple):
    """The identity of a call."""

    tenant_id: str
    user_id: str


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
        return {name: self.parameters[name] for name in _NAMES if self.parameters.get(name) is not None}


def identify(tenant_id: str, user_id: str) -> Who:
    return Who(given.identifier("tenant_id", tenant_id), given.identifier("user_id", user_id))


def _named(build: Callable[Concatenate[Who, P], Call[T]]) -> Callable[Concatenate[Who, P], Call[T]]:
    """What is refused before anything is sent says which call it was meant for, as the database's refusals do."""

    @wraps(build)
    def named(who: Who, /, *args: P.args, **kwargs: P.kwargs) -> Call[T]:
        try:
            return build(who, *args, **kwargs)
        except BadInput as error:
            error.call, error.names = build.__name__, who._asdict()
            raise

    return named


@_named
def open_session(who: Who, app_name: str, session_id: str | None, state: Mapping[str, Any] | None) -> Call[Session]:
    parameters = {
        "app_name": given.identifier("app_name", app_name),
        "session_id": given.optional_identifier("session_id", session_id),
        "state": given.optional_object("state", state),
    }
    # Without a name each call makes another session.
    return _call("open_session", who, parameters, Session, repeatable=session_id is not None)


@_named
def close_session(who: Who, session: object, reason: str | None) -> Call[Session]:
    parameters = {"session_uid": given.session_uid(session), "reason": given.optional_text("reason", reason)}
    return _call("close_session", who, parameters, Session, repeatable=True)


@_named
def list_sessions(who: Who, app_name: str | None) -> Call[list[Session]]:
    parameters = {"app_name": given.optional_identifier("app_name", app_name)}
    return _list("list_sessions", who, parameters, Session)


@_named
def get_state(who: Who, app_name: str | None, session: object) -> Call[State]:
    parameters = {
        "app_name": given.optional_identifier("app_name", app_name),
        "session_uid": given.optional_session_uid(session),
    }
    return _look("get_state", who, parameters, State)


@_named
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
    return _call("append_event", who, parameters, AppendedEvent, repeatable=bool(event_id))


@_named
def read_events(
    who: Who, session: object, *, after_seq: int | None, latest: int | None, after_time: datetime | None
) -> Call[list[Event]]:
    parameters = {
        "session_uid": given.session_uid(session),
        "after_seq": given.optional_integer("after_seq", after_seq),
        "latest": given.optional_integer("latest", latest),
        "after_time": given.optional_time("after_time", after_time),
    }
    return _list("read_events", who, parameters, Event)


@_named
def verify_session(who: Who, session: object) -> Call[Verification]:
    parameters = {"session_uid": given.session_uid(session)}
    return _look("verify_session", who, parameters, Verification)


@_named
def start_run(who: Who, session: object, invocation_id: str, *, trigger: str, input: Any) -> Call[RunOutcome]:  # noqa: A002  # the parameter's name in SQL
    parameters = {
        "session_uid": given.session_uid(session),
        "invocation_id": given.identifier("invocation_id", invocation_id),
        "trigger": given.identifier("trigger", trigger),
        "input": given.optional_json("input", input),
    }
    # Sent twice, the second answer would be busy, and nobody would execute the run.
    return _call("start_run", who, parameters, RunOutcome, repeatable=False)


@_named
def settle_run(
    who: Who,
    run: object,
    status: str,
    *,
    result: Any,
    error: Any,
    tools_executed: Sequence[str] | None,
    attempt: int | None,
) -> Call[RunOutcome]:
    if attempt is None and isinstance(run, RunOutcome):
        if run.outcome == "busy":
            raise ArgumentInvalid(
                "run is executed by somebody else",
                hint="start_run said busy: leave it alone. Whoever knows that it is dead passes attempt.",
                column="run",
            )
        attempt = run.attempt
    parameters = {
        "run_uid": given.run_uid(run),
        "attempt": given.optional_integer("attempt", attempt),
        "status": given.text("status", status),
        "result": given.optional_json("result", result),
        "error": given.optional_json("error", error),
        "tools_executed": given.optional_names("tools_executed", tools_executed),
    }
    return _call("settle_run", who, parameters, RunOutcome, repeatable=True)


@_named
def list_runs(who: Who, session: object) -> Call[list[Run]]:
    return _list("list_runs", who, {"session_uid": given.optional_session_uid(session)}, Run)


@_named
def retry_verdict(who: Who, run: object) -> Call[Verdict]:
    return _look("retry_verdict", who, {"run_uid": given.run_uid(run)}, Verdict)


@_named
def replay_verdict(who: Who, run: object) -> Call[Verdict]:
    return _look("replay_verdict", who, {"run_uid": given.run_uid(run)}, Verdict)


def _call(name: str, who: Who, parameters: Mapping[str, Any], kind: type[T], *, repeatable: bool) -> Call[T]:
    read = _READERS[kind]
    return Call(name, {**who._asdict(), **parameters}, lambda rows: read(rows[0]), repeatable, writes=True)


def _look(name: str, who: Who, parameters: Mapping[str, Any], kind: type[T]) -> Call[T]:
    """A call that writes nothing and gives one row."""
    return replace(_call(name, who, parameters, kind, repeatable=True), writes=False)


def _list(name: str, who: Who, parameters: Mapping[str, Any], kind: type[T]) -> Call[list[T]]:
    """A call that writes nothing and gives any number of rows."""
    read = _READERS[kind]
    return Call(name, {**who._asdict(), **parameters}, lambda rows: [read(row) for row in rows], True, writes=False)
