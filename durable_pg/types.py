"""The rows that calls return. Uids are issued by the database; every datetime is in UTC, by the database's clock unless
said otherwise; JSON values come back equal to what was sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypedDict
from uuid import UUID

RunStatus: TypeAlias = Literal["running", "awaiting", "interrupted", "succeeded", "failed", "cancelled"]
FinalStatus: TypeAlias = Literal["succeeded", "failed", "cancelled"]
StartAnswer: TypeAlias = Literal["started", "resumed", "busy", "awaiting", "settled"]
RunAnswer: TypeAlias = Literal[StartAnswer, "renewed", "interrupted", "already_interrupted", "already_settled"]
EffectStatus: TypeAlias = Literal["begun", "succeeded", "failed", "unverified"]
ReplayClass: TypeAlias = Literal["effect", "read_only", "keyed"]
IntentScope: TypeAlias = Literal["user", "tenant"]


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
    """A run after a call that changes it.

    `outcome`: started, resumed, busy, awaiting or settled (start_run); renewed (renew_lease); interrupted,
    already_interrupted or settled (interrupt_run); settled or already_settled (settle_run, cancel_run). `attempt` is
    the fencing token of later writes: None when the run is not the caller's, busy or awaiting. `tools_executed`: None
    while the run is open, and when it is settled and nobody knows.
    """

    run_uid: UUID
    attempt: int | None
    status: RunStatus
    outcome: RunAnswer
    tools_executed: list[str] | None
    result: Any
    error: Any
    lease_expires_at: datetime | None


@dataclass(frozen=True)
class RunRow:
    """The record of executing one invocation. `interrupted_with`: with what error, while it is."""

    run_uid: UUID
    session_uid: UUID
    user_id: str
    invocation_id: str
    generation: int
    trigger: str
    input: Any
    status: RunStatus
    attempt: int
    max_attempts: int | None
    lease_holder: str | None
    lease_expires_at: datetime | None
    interrupted_with: Any
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


@dataclass(frozen=True)
class BegunEffect:
    """What begin_effect says: whether to execute, or why not.

    `outcome`: execute (call the tool with `idempotency_key`, then finish_effect), recorded (`result` is the answer),
    in_flight, unverified, or diverged; then the row is that of the earlier call that this attempt has to ask for first,
    with its `step` and `ordinal`. `args_match`: whether the arguments are those that were recorded. `run_uid`: the run
    whose attempt has the effect in hand; `attempt`: told only with execute. `begun_at`: when it was begun last.
    """

    effect_uid: UUID
    run_uid: UUID
    idempotency_key: str
    outcome: Literal["execute", "recorded", "in_flight", "unverified", "diverged"]
    status: EffectStatus
    step: int
    ordinal: int
    tool: str
    args: Any
    args_match: bool
    result: Any
    error: Any
    attempt: int | None
    failures: int
    lease_expires_at: datetime | None
    begun_at: datetime


@dataclass(frozen=True)
class Effect:
    """One outside side effect. `status` is what holds now: begun and its lease over reads as unverified.

    `scope`: what its name is unique in. `evidence`: what somebody resolved it with. `outcome`: finished or
    already_finished (finish_effect), resolved or already_resolved (resolve_effect), None (list_effects).
    """

    effect_uid: UUID
    run_uid: UUID
    user_id: str
    app_name: str
    step: int
    ordinal: int
    tool: str
    scope: Literal["run", "user", "tenant"]
    intent: str | None
    args: Any
    status: EffectStatus
    attempt: int
    failures: int
    idempotency_key: str
    lease_expires_at: datetime | None
    first_begun_at: datetime
    begun_at: datetime
    finished_at: datetime | None
    result: Any
    error: Any
    evidence: Any
    outcome: Literal["finished", "already_finished", "resolved", "already_resolved"] | None


@dataclass(frozen=True)
class Checkpoint:
    """What a run is resumed from: the state after a step; the history is the event log up to `event_seq`.

    `outcome`: saved or already_saved (save_checkpoint), loaded (load_checkpoint).
    """

    run_uid: UUID
    step: int
    schema_version: int
    event_seq: int
    attempt: int
    state: Any
    created_at: datetime
    outcome: Literal["saved", "already_saved", "loaded"]


@dataclass(frozen=True)
class RecordedStep:
    """Where a step is recorded. `event_seqs`: of its events, in their order.

    `outcome`: saved or already_saved with a checkpoint, recorded without one.
    """

    run_uid: UUID
    step: int
    event_seq: int
    event_seqs: list[int]
    outcome: Literal["saved", "already_saved", "recorded"]


@dataclass(frozen=True)
class ResumableRun:
    """A run that nobody executes, of whichever tenant. `unverified`: effects that somebody has to look into first."""

    tenant_id: str
    user_id: str
    app_name: str
    session_uid: UUID
    run_uid: UUID
    invocation_id: str
    status: RunStatus
    attempt: int
    since: datetime
    unverified: int


@dataclass(frozen=True)
class ReapedRuns:
    """How many dead runs were marked as interrupted, of how many effects as unverified, how many were locked."""

    runs: int
    effects: int
    skipped: int


@dataclass(frozen=True)
class Tool:
    """What is known of a tool of an app: what calling it again would do.

    `outcome`: written, unchanged, kept (what is stored is stricter than what was declared), or stored (list_tools).
    """

    app_name: str
    tool: str
    replay_class: ReplayClass
    updated_at: datetime
    outcome: Literal["written", "unchanged", "kept", "stored"]


class NewEvent(TypedDict, total=False):
    """An event of record_step: the parameters of append_event. `author` is needed."""

    author: str
    content: Any
    event_id: str
    metadata: Mapping[str, Any]
    state_delta: Mapping[str, Any]
    occurred_at: datetime
    repeatable: bool
    extra_tool_calls: Sequence[str]


class FinishedEffect(TypedDict, total=False):
    """An effect's outcome, of record_step: the parameters of finish_effect. `effect_uid` and `status` are needed."""

    effect_uid: UUID | str
    status: Literal["succeeded", "failed", "unverified"]
    result: Any
    error: Any


Run: TypeAlias = RunRow

# What a call takes for a session, a run or an effect: the row that another call gave, or its uid.
AnySession: TypeAlias = Session | UUID | str
AnyRun: TypeAlias = RunOutcome | RunRow | UUID | str
AnyEffect: TypeAlias = BegunEffect | Effect | UUID | str
