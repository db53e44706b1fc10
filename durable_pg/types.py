"""The rows that calls return. Uids are issued by the database; every datetime is in UTC, by the database's clock unless
said otherwise; JSON values come back equal to what was sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

RunStatus: TypeAlias = Literal["running", "awaiting", "interrupted", "succeeded", "failed", "cancelled"]
FinalStatus: TypeAlias = Literal["succeeded", "failed", "cancelled"]


@dataclass(frozen=True)
class Session:
    """One conversation of one user in one app.

    `outcome`: created or found (open_session), closed or already_closed (close_session), open (list_sessions).
    `state` is the session's own; get_state merges it with the shared ones. `revision` grows with every append.
    """

    session_uid: UUID
    app_name: str
    user_id: str
    session_id: str
    state: dict[str, Any]
    revision: int
    last_seq: int
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None
    outcome: Literal["created", "found", "closed", "already_closed", "open"]


@dataclass(frozen=True)
class State:
    """The merged state of a session (app, user and session keys), or of app and user alone; then `revision` is None."""

    state: dict[str, Any]
    revision: int | None


@dataclass(frozen=True)
class AppendedEvent:
    """Where an event is recorded. `outcome` duplicate: it was there already, and nothing was written."""

    seq: int
    event_id: str
    revision: int
    outcome: Literal["appended", "duplicate"]


@dataclass(frozen=True)
class Event:
    """One entry of a session's log.

    `occurred_at` is the caller's, `recorded_at` the database's. `tool_calls` are what the database found in `content`,
    `extra_tool_calls` what the caller named besides. `opening`: the user message that opens its invocation.
    `rewind_to`: readers skip back to this seq. `hash`: 32 bytes, covers the hash of the event before.
    """

    seq: int
    event_id: str
    invocation_id: str | None
    author: str
    content: Any
    metadata: dict[str, Any]
    occurred_at: datetime
    recorded_at: datetime
    attempt: int | None
    opening: bool
    repeatable: bool
    generation: int
    tool_calls: list[str]
    extra_tool_calls: list[str]
    rewind_to: int | None
    hash: bytes


@dataclass(frozen=True)
class Verification:
    """Whether a session's hash chain is whole; if not, the first seq at fault and what is wrong there."""

    intact: bool
    events_checked: int
    broken_seq: int | None
    problem: str | None


@dataclass(frozen=True)
class RunOutcome:
    """A run after start_run (started, busy, settled) or settle_run (settled, already_settled).

    `attempt` is the fencing token of later writes. `tools_executed`: None while the run is open, and when it is settled
    and nobody knows.
    """

    run_uid: UUID
    attempt: int
    status: RunStatus
    outcome: Literal["started", "busy", "settled", "already_settled"]
    tools_executed: list[str] | None
    result: Any
    error: Any


@dataclass(frozen=True)
class Run:
    """The record of executing one invocation."""

    run_uid: UUID
    session_uid: UUID
    user_id: str
    invocation_id: str
    generation: int
    trigger: str
    input: Any
    status: RunStatus
    attempt: int
    tools_executed: list[str] | None
    result: Any
    error: Any
    started_at: datetime
    settled_at: datetime | None


@dataclass(frozen=True)
class Verdict:
    """Whether a retry or a replay is allowed, why, and the tools that stand in the way."""

    allowed: bool
    reason: str
    tools: list[str]
