"""The errors of the client: one class for each SQLSTATE of durable_pg, and those that have none.

Generated from sql/errcodes.txt by tools/generate_errors.py: change those. What every error carries is in _errors.py,
what runs and effects raise by themselves in _run_errors.py.
"""

from durable_pg._errors import (
    AccessRefused,
    BadInput,
    CallCancelled,
    CannotConnect,
    Conflict,
    ConnectionFault,
    ConnectionLost,
    DurableError,
    JsonNotReadable,
    LockTimeout,
    PoolExhausted,
    PoolNotOpen,
    ReadOnly,
    Refused,
    RoleMissing,
    SchemaMissing,
    SchemaOlder,
    SetupError,
    TryAgain,
    UnexpectedError,
    WrongState,
)
from durable_pg._run_errors import (
    CheckpointNewer,
    CheckpointUpgradeMissing,
    EffectDiverged,
    EffectError,
    EffectFailed,
    EffectTimedOut,
    EffectUnverified,
    HeldEffect,
    PoolNeeded,
    RunAwaiting,
    RunBusy,
    SettledRun,
)

__all__ = [
    "BY_SQLSTATE",
    "AccessRefused",
    "AppendOnly",
    "ArgumentInvalid",
    "BadInput",
    "CallCancelled",
    "CannotConnect",
    "CheckpointDiffers",
    "CheckpointGap",
    "CheckpointNewer",
    "CheckpointUpgradeMissing",
    "Conflict",
    "ConnectionFault",
    "ConnectionLost",
    "CounterShrinks",
    "DurableError",
    "EffectDiverged",
    "EffectError",
    "EffectFailed",
    "EffectInFlight",
    "EffectNotFound",
    "EffectPayloadDiffers",
    "EffectTimedOut",
    "EffectUnverified",
    "EventDiffers",
    "FrozenColumn",
    "IdentifierInvalid",
    "IdentityConflict",
    "IdentityMissing",
    "IllegalTransition",
    "IsolationRefused",
    "JsonNotReadable",
    "JsonNotStorable",
    "LeaseLost",
    "LockTimeout",
    "LoginIsRuntime",
    "OpeningMessageDiffers",
    "OwnerRefused",
    "PoolExhausted",
    "PoolNeeded",
    "PoolNotOpen",
    "ReadOnly",
    "Refused",
    "RevisionDiffers",
    "RewindTargetUnknown",
    "RoleMissing",
    "RolesNotReady",
    "RowsExist",
    "RunAwaiting",
    "RunBusy",
    "RunInputDiffers",
    "RunNotFound",
    "RunOpen",
    "RunSettled",
    "SchemaMissing",
    "SchemaOlder",
    "SessionClosed",
    "SessionDiffers",
    "SessionNotFound",
    "SetupError",
    "StaleRevision",
    "TableUnfit",
    "ToolsIncomplete",
    "TryAgain",
    "UnexpectedError",
    "WriteOnce",
    "WrongState",
]


class IdentifierInvalid(BadInput):
    """An identifier is missing, blank, padded or too long; DETAIL names field, limit and length."""

    sqlstate = "22W01"
    name = "identifier_invalid"
    rule = "identity-required"


class JsonNotStorable(BadInput):
    """A JSON value can't be stored exactly (number out of range, too deep, too large); the message names the path."""

    sqlstate = "22W02"
    name = "json_not_storable"
    rule = "json-policy"


class ArgumentInvalid(BadInput):
    """An argument is missing or has no meaning here; the message names it."""

    sqlstate = "22W03"
    name = "argument_invalid"
    rule = ""


class RewindTargetUnknown(BadInput):
    """A rewind names an invocation this session does not hold (any more)."""

    sqlstate = "22W04"
    name = "rewind_target_unknown"
    rule = "one-opening-message"


class AppendOnly(Conflict):
    """A recorded row was to be changed or removed."""

    sqlstate = "23W01"
    name = "append_only"
    rule = "append-only"


class WriteOnce(Conflict):
    """A value that was written once was to be changed; DETAIL shows the stored one."""

    sqlstate = "23W02"
    name = "write_once"
    rule = "tools-write-once"


class FrozenColumn(Conflict):
    """A column that never changes after INSERT was to be changed."""

    sqlstate = "23W03"
    name = "frozen_column"
    rule = "run-identity-frozen"


class IllegalTransition(Conflict):
    """A status was to move along a way that transitions does not list, or a final row was to change."""

    sqlstate = "23W04"
    name = "illegal_transition"
    rule = "legal-transitions"


class EventDiffers(Conflict):
    """Another event is recorded under this event_id."""

    sqlstate = "23W05"
    name = "event_differs"
    rule = "one-opening-message"


class OpeningMessageDiffers(Conflict):
    """Another opening user message is recorded for this invocation."""

    sqlstate = "23W06"
    name = "opening_message_differs"
    rule = "one-opening-message"


class RunInputDiffers(Conflict):
    """The run of this invocation was started with another input."""

    sqlstate = "23W07"
    name = "run_input_differs"
    rule = "run-identity-frozen"


class ToolsIncomplete(Conflict):
    """tools_executed leaves out tool calls that are recorded for the run; DETAIL names them."""

    sqlstate = "23W08"
    name = "tools_incomplete"
    rule = "tools-complete"


class SessionDiffers(Conflict):
    """An open session of this name was opened with another initial state."""

    sqlstate = "23W09"
    name = "session_differs"
    rule = "run-identity-frozen"


class EffectPayloadDiffers(Conflict):
    """The intent was begun for another tool or with other arguments."""

    sqlstate = "23W10"
    name = "effect_payload_differs"
    rule = "effect-once"


class CheckpointDiffers(Conflict):
    """Another state is saved for this step of the run."""

    sqlstate = "23W11"
    name = "checkpoint_differs"
    rule = "append-only"


class CounterShrinks(Conflict):
    """A counter that only grows was to become smaller."""

    sqlstate = "23W12"
    name = "counter_shrinks"
    rule = "fenced"


class IdentityMissing(AccessRefused):
    """No identity in this transaction: call durable.act_as first or as the me argument."""

    sqlstate = "42W01"
    name = "identity_missing"
    rule = "identity-required"


class IdentityConflict(AccessRefused):
    """The transaction already acts as somebody else."""

    sqlstate = "42W02"
    name = "identity_conflict"
    rule = "identity-required"


class OwnerRefused(AccessRefused):
    """durable_owner reads and writes no rows."""

    sqlstate = "42W03"
    name = "owner_refused"
    rule = "identity-required"


class SessionNotFound(AccessRefused):
    """There is no such session for this tenant and user."""

    sqlstate = "42W04"
    name = "session_not_found"
    rule = "user-isolation"


class RunNotFound(AccessRefused):
    """There is no such run for this tenant and user."""

    sqlstate = "42W05"
    name = "run_not_found"
    rule = "user-isolation"


class TableUnfit(AccessRefused):
    """A guard can't be put on this table or column."""

    sqlstate = "42W06"
    name = "table_unfit"
    rule = "append-only"


class EffectNotFound(AccessRefused):
    """There is no such effect for this tenant and user."""

    sqlstate = "42W07"
    name = "effect_not_found"
    rule = "user-isolation"


class RolesNotReady(AccessRefused):
    """The migration login can't make the roles; DETAIL has the statements for a DBA."""

    sqlstate = "42W08"
    name = "roles_not_ready"
    rule = "owner-apart"


class LoginIsRuntime(AccessRefused):
    """A login that holds a front role was to migrate; it never may."""

    sqlstate = "42W09"
    name = "login_is_runtime"
    rule = "owner-apart"


class SessionClosed(WrongState):
    """The session is closed; nothing more is written to it."""

    sqlstate = "55W01"
    name = "session_closed"
    rule = "append-only"


class StaleRevision(WrongState):
    """The session has moved on since the caller read it; DETAIL shows both revisions."""

    sqlstate = "55W02"
    name = "stale_revision"
    rule = "append-only"


class RunSettled(SettledRun):
    """The run is settled; nothing more is recorded for its invocation, and its outcome stays."""

    sqlstate = "55W03"
    name = "run_settled"
    rule = "tools-complete"


class LeaseLost(WrongState):
    """The attempt does not hold the run: another one took it, its lease ran out, or none was given."""

    sqlstate = "55W04"
    name = "lease_lost"
    rule = "fenced"


class IsolationRefused(WrongState):
    """The call derives its answer from the log and can't run under REPEATABLE READ or SERIALIZABLE."""

    sqlstate = "55W05"
    name = "isolation_refused"
    rule = "tools-complete"


class RowsExist(WrongState):
    """A downgrade would drop recorded rows."""

    sqlstate = "55W06"
    name = "rows_exist"
    rule = "append-only"


class RevisionDiffers(WrongState):
    """An offline script was run on a database that is not at the revision it starts from."""

    sqlstate = "55W07"
    name = "revision_differs"
    rule = ""


class RunOpen(WrongState):
    """A rewind would take back a run that is executing; settle it first."""

    sqlstate = "55W08"
    name = "run_open"
    rule = "tools-complete"


class EffectInFlight(HeldEffect):
    """The effect's worker still holds it; its own outcome comes first."""

    sqlstate = "55W09"
    name = "effect_in_flight"
    rule = "effect-once"


class CheckpointGap(WrongState):
    """The step before this one has no checkpoint."""

    sqlstate = "55W10"
    name = "checkpoint_gap"
    rule = "append-only"


BY_SQLSTATE: dict[str, type[Refused]] = {
    "22W01": IdentifierInvalid,
    "22W02": JsonNotStorable,
    "22W03": ArgumentInvalid,
    "22W04": RewindTargetUnknown,
    "23W01": AppendOnly,
    "23W02": WriteOnce,
    "23W03": FrozenColumn,
    "23W04": IllegalTransition,
    "23W05": EventDiffers,
    "23W06": OpeningMessageDiffers,
    "23W07": RunInputDiffers,
    "23W08": ToolsIncomplete,
    "23W09": SessionDiffers,
    "23W10": EffectPayloadDiffers,
    "23W11": CheckpointDiffers,
    "23W12": CounterShrinks,
    "42W01": IdentityMissing,
    "42W02": IdentityConflict,
    "42W03": OwnerRefused,
    "42W04": SessionNotFound,
    "42W05": RunNotFound,
    "42W06": TableUnfit,
    "42W07": EffectNotFound,
    "42W08": RolesNotReady,
    "42W09": LoginIsRuntime,
    "55W01": SessionClosed,
    "55W02": StaleRevision,
    "55W03": RunSettled,
    "55W04": LeaseLost,
    "55W05": IsolationRefused,
    "55W06": RowsExist,
    "55W07": RevisionDiffers,
    "55W08": RunOpen,
    "55W09": EffectInFlight,
    "55W10": CheckpointGap,
}
