"""The errors of the client: one class for each SQLSTATE of durable_pg, and those that have none.

The classes at the end are generated from sql/errcodes.txt by tools/generate_errors.py; all others are written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

if TYPE_CHECKING:
    from durable_pg.types import BegunEffect, Effect, RunOutcome

BY_SQLSTATE: dict[str, type[Refused]] = {}
_FACTS = (
    *("sqlstate", "detail", "hint", "schema", "table", "column", "constraint"),
    *("call", "names", "may_have_taken_effect"),
)


class DurableError(Exception):
    """Base of all errors of the client.

    `sqlstate`: five characters, None when the database was not asked or gave none. `message`, `detail`, `hint`: text,
    "" when there is none. `schema`, `table`, `column`, `constraint`: what the database says is concerned, "" when
    nothing. `call`: the SQL function. `names`: identifiers that the call was given, by parameter (tenant_id, user_id,
    session_uid, invocation_id ...), never content. `may_have_taken_effect`: False when it is certain that nothing was
    written; True when nobody knows, so that the caller has to look or to repeat a call that may be repeated.
    """

    sqlstate: str | None = None
    # What a subclass takes by keyword besides.
    _more: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str | None = None,
        detail: str = "",
        hint: str = "",
        schema: str = "",
        table: str = "",
        column: str = "",
        constraint: str = "",
        call: str = "",
        names: Mapping[str, str] | None = None,
        may_have_taken_effect: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate or type(self).sqlstate
        self.detail = detail
        self.hint = hint
        self.schema = schema
        self.table = table
        self.column = column
        self.constraint = constraint
        self.call = call
        self.names = dict(names or {})
        self.may_have_taken_effect = may_have_taken_effect

    def __str__(self) -> str:
        lines = [f"{self.message} ({self.sqlstate})" if self.sqlstate else self.message]
        if self.detail:
            lines.append(f"Detail: {self.detail}")
        if self.hint:
            lines.append(f"Hint: {self.hint}")
        if self.may_have_taken_effect:
            lines.append("The call may have taken effect.")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions cross process boundaries in worker pools.
        facts = {fact: getattr(self, fact) for fact in (*_FACTS, *self._more)}
        return partial(type(self), **facts), (self.message,)


class Refused(DurableError):
    """A rule of the database said no to this call, which wrote nothing. Each SQLSTATE of durable_pg is a subclass."""

    name: ClassVar[str] = ""
    rule: ClassVar[str] = ""

    def __init_subclass__(cls, *, sqlstate: str = "", name: str = "", rule: str = "") -> None:
        super().__init_subclass__()
        if sqlstate:
            cls.sqlstate, cls.name, cls.rule = sqlstate, name, rule
            BY_SQLSTATE[sqlstate] = cls


class BadInput(Refused):
    """SQLSTATE class 22: an argument is not what it has to be. Some are found before anything is sent."""


class Conflict(Refused):
    """SQLSTATE class 23: what is recorded stands against it."""


class AccessRefused(Refused):
    """SQLSTATE class 42: who is asking, and what there is for them."""


class WrongState(Refused):
    """SQLSTATE class 55: not now, or not any more."""


class ConnectionFault(DurableError):
    """The connection, the pool or the server stood in the way; `may_have_taken_effect` says what is certain.

    After a call that was sent again by itself it is about both times, whichever class the second one ended in.
    """


class CannotConnect(ConnectionFault):
    """No connection to the server could be had. Nothing was sent."""


class PoolExhausted(ConnectionFault):
    """All connections of the pool stayed in use for longer than its timeout. Nothing was sent."""


class PoolNotOpen(ConnectionFault):
    """The pool is not open yet, or is closed already. Nothing was sent."""


class ConnectionLost(ConnectionFault):
    """The connection broke while the call was under way; see `may_have_taken_effect`."""


class CallCancelled(ConnectionFault):
    """statement_timeout, or somebody's pg_cancel_backend (57014). The database undid the statement."""


class LockTimeout(ConnectionFault):
    """lock_timeout ran out (55P03): another call held the session or the run. Nothing was written; try again."""


class TryAgain(ConnectionFault):
    """A deadlock, or a stricter isolation level met a newer row (class 40). Nothing was written; repeat it."""


class ReadOnly(ConnectionFault):
    """The server is a standby, or the transaction read-only (25006). Nothing was written."""


class SetupError(DurableError):
    """Database and client don't fit each other. Nothing was written."""


class SchemaMissing(SetupError):
    """durable_pg is not installed in this database (3F000)."""


class SchemaOlder(SetupError):
    """The schema lacks what this client calls (42883, 42703)."""


class RoleMissing(SetupError):
    """The login holds no front role that may do this (42501)."""


class JsonNotReadable(DurableError):
    """A recorded JSON value can't be built in this interpreter; reading it in SQL works."""


class UnexpectedError(DurableError):
    """Any other error of the database or the driver, which is `__cause__`."""


class SettledRun(WrongState):
    """Base of RunSettled: `run` is what start_run said where me.run() raised it, None where a call was refused."""

    _more = ("run",)

    def __init__(self, message: str, *, run: RunOutcome | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.run = run

    @property
    def result(self) -> Any:
        """The recorded result; None where there is none, and where `run` is None."""
        return None if self.run is None else self.run.result


class RunBusy(DurableError):
    """me.run(): somebody else holds the run, until `lease_expires_at` unless they renew it. Nothing was started."""

    _more = ("run",)

    def __init__(self, message: str, *, run: RunOutcome, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.run = run

    @property
    def lease_expires_at(self) -> datetime | None:
        """When the run can be taken, by the database's clock, if its holder says nothing until then."""
        return self.run.lease_expires_at


class RunAwaiting(DurableError):
    """me.run(): the run waits for a person's decision. Nothing was started."""

    _more = ("run",)

    def __init__(self, message: str, *, run: RunOutcome, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.run = run


class PoolNeeded(SetupError):
    """me.run() on a connection that was brought: it needs transactions of its own. Nothing was sent."""


class CheckpointNewer(DurableError):
    """A checkpoint was saved by a newer program than this one, which must not guess what it means."""

    _more = ("schema_version", "known")

    def __init__(self, message: str, *, schema_version: int, known: int, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.schema_version = schema_version
        self.known = known


class CheckpointUpgradeMissing(DurableError):
    """A checkpoint is older than this program, and no upgrade function leads on from `from_version`."""

    _more = ("schema_version", "from_version")

    def __init__(self, message: str, *, schema_version: int, from_version: int, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.schema_version = schema_version
        self.from_version = from_version


class EffectError(DurableError):
    """Base of what run.effect() and run.call() raise instead of returning a result."""


class EffectFailed(EffectError):
    """The effect certainly did not happen. A tool raises it with what went wrong, as JSON; so may be begun again.

    Raise it only where that is known: a refusal by the provider, nothing sent. All other exceptions mean `unverified`.
    """

    def __init__(self, error: Any = None, **facts: Any) -> None:
        said = error.get("message", error) if isinstance(error, dict) else error
        super().__init__("the effect did not happen" if said is None else f"the effect did not happen: {said}", **facts)
        self.error = error
        # Of which effect run.effect() has recorded it; None as a tool raises it.
        self.effect_uid: UUID | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **{fact: getattr(self, fact) for fact in _FACTS}), (self.error,)


class EffectUnverified(EffectError):
    """Nobody knows whether the effect happened, so it is not executed again.

    `effect` says which one; it goes on when resolve_effect() has been told, or `verify` finds out.
    """

    _more = ("effect",)

    def __init__(self, message: str, *, effect: BegunEffect | Effect, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.effect = effect


class HeldEffect(EffectError, WrongState):
    """Base of EffectInFlight: `effect` is what begin_effect said where run.effect() raised it, None in a refusal."""

    _more = ("effect",)

    def __init__(self, message: str, *, effect: BegunEffect | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.effect = effect

    @property
    def lease_expires_at(self) -> datetime | None:
        """When it counts as unverified if its worker says nothing until then, by the database's clock."""
        return None if self.effect is None else self.effect.lease_expires_at


class EffectDiverged(EffectError):
    """The resumed attempt asks for another call than `effect`, which an earlier attempt made at this point."""

    _more = ("effect",)

    def __init__(self, message: str, *, effect: BegunEffect, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.effect = effect


class EffectTimedOut(EffectError, TimeoutError):
    """The tool did not answer within `timeout`. What it did is unknown: the effect is recorded as unverified."""


# From here on written by tools/generate_errors.py, from sql/errcodes.txt.


class IdentifierInvalid(BadInput, sqlstate="22W01", name="identifier_invalid", rule="identity-required"):
    """An identifier is missing, blank, padded or too long; DETAIL names field, limit and length."""


class JsonNotStorable(BadInput, sqlstate="22W02", name="json_not_storable", rule="json-policy"):
    """A JSON value can't be stored exactly (number out of range, too deep, too large); the message names the path."""


class ArgumentInvalid(BadInput, sqlstate="22W03", name="argument_invalid", rule=""):
    """An argument is missing or has no meaning here; the message names it."""


class RewindTargetUnknown(BadInput, sqlstate="22W04", name="rewind_target_unknown", rule="one-opening-message"):
    """A rewind names an invocation this session does not hold (any more)."""


class AppendOnly(Conflict, sqlstate="23W01", name="append_only", rule="append-only"):
    """A recorded row was to be changed or removed."""


class WriteOnce(Conflict, sqlstate="23W02", name="write_once", rule="tools-write-once"):
    """A value that was written once was to be changed; DETAIL shows the stored one."""


class FrozenColumn(Conflict, sqlstate="23W03", name="frozen_column", rule="run-identity-frozen"):
    """A column that never changes after INSERT was to be changed."""


class IllegalTransition(Conflict, sqlstate="23W04", name="illegal_transition", rule="legal-transitions"):
    """A status was to move along a way that transitions does not list, or a final row was to change."""


class EventDiffers(Conflict, sqlstate="23W05", name="event_differs", rule="one-opening-message"):
    """Another event is recorded under this event_id."""


class OpeningMessageDiffers(Conflict, sqlstate="23W06", name="opening_message_differs", rule="one-opening-message"):
    """Another opening user message is recorded for this invocation."""


class RunInputDiffers(Conflict, sqlstate="23W07", name="run_input_differs", rule="run-identity-frozen"):
    """The run of this invocation was started with another input."""


class ToolsIncomplete(Conflict, sqlstate="23W08", name="tools_incomplete", rule="tools-complete"):
    """tools_executed leaves out tool calls that are recorded for the run; DETAIL names them."""


class SessionDiffers(Conflict, sqlstate="23W09", name="session_differs", rule="run-identity-frozen"):
    """An open session of this name was opened with another initial state."""


class EffectPayloadDiffers(Conflict, sqlstate="23W10", name="effect_payload_differs", rule="effect-once"):
    """The intent was begun for another tool or with other arguments."""


class CheckpointDiffers(Conflict, sqlstate="23W11", name="checkpoint_differs", rule="append-only"):
    """Another state is saved for this step of the run."""


class CounterShrinks(Conflict, sqlstate="23W12", name="counter_shrinks", rule="fenced"):
    """A counter that only grows was to become smaller."""


class IdentityMissing(AccessRefused, sqlstate="42W01", name="identity_missing", rule="identity-required"):
    """No identity in this transaction: call durable.act_as first or as the me argument."""


class IdentityConflict(AccessRefused, sqlstate="42W02", name="identity_conflict", rule="identity-required"):
    """The transaction already acts as somebody else."""


class OwnerRefused(AccessRefused, sqlstate="42W03", name="owner_refused", rule="identity-required"):
    """durable_owner reads and writes no rows."""


class SessionNotFound(AccessRefused, sqlstate="42W04", name="session_not_found", rule="user-isolation"):
    """There is no such session for this tenant and user."""


class RunNotFound(AccessRefused, sqlstate="42W05", name="run_not_found", rule="user-isolation"):
    """There is no such run for this tenant and user."""


class TableUnfit(AccessRefused, sqlstate="42W06", name="table_unfit", rule="append-only"):
    """A guard can't be put on this table or column."""


class EffectNotFound(AccessRefused, sqlstate="42W07", name="effect_not_found", rule="user-isolation"):
    """There is no such effect for this tenant and user."""


class RolesNotReady(AccessRefused, sqlstate="42W08", name="roles_not_ready", rule="owner-apart"):
    """The migration login can't make the roles; DETAIL has the statements for a DBA."""


class LoginIsRuntime(AccessRefused, sqlstate="42W09", name="login_is_runtime", rule="owner-apart"):
    """A login that holds a front role was to migrate; it never may."""


class SessionClosed(WrongState, sqlstate="55W01", name="session_closed", rule="append-only"):
    """The session is closed; nothing more is written to it."""


class StaleRevision(WrongState, sqlstate="55W02", name="stale_revision", rule="append-only"):
    """The session has moved on since the caller read it; DETAIL shows both revisions."""


class RunSettled(SettledRun, sqlstate="55W03", name="run_settled", rule="tools-complete"):
    """The run is settled; nothing more is recorded for its invocation, and its outcome stays."""


class LeaseLost(WrongState, sqlstate="55W04", name="lease_lost", rule="fenced"):
    """The attempt does not hold the run: another one took it, its lease ran out, or none was given."""


class IsolationRefused(WrongState, sqlstate="55W05", name="isolation_refused", rule="tools-complete"):
    """The call derives its answer from the log and can't run under REPEATABLE READ or SERIALIZABLE."""


class RowsExist(WrongState, sqlstate="55W06", name="rows_exist", rule="append-only"):
    """A downgrade would drop recorded rows."""


class RevisionDiffers(WrongState, sqlstate="55W07", name="revision_differs", rule=""):
    """An offline script was run on a database that is not at the revision it starts from."""


class RunOpen(WrongState, sqlstate="55W08", name="run_open", rule="tools-complete"):
    """A rewind would take back a run that is executing; settle it first."""


class EffectInFlight(HeldEffect, sqlstate="55W09", name="effect_in_flight", rule="effect-once"):
    """The effect's worker still holds it; its own outcome comes first."""


class CheckpointGap(WrongState, sqlstate="55W10", name="checkpoint_gap", rule="append-only"):
    """The step before this one has no checkpoint."""
