"""An error of psycopg, psycopg_pool or SQLAlchemy -> one of ours, with what is certain about the call's effect."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests
from sqlalchemy.exc import PendingRollbackError, ResourceClosedError

from durable_pg import errors
from durable_pg._wire.diagnostics import diagnostic, primary_message, sqlstate
from durable_pg._wire.statements import Call

_UPGRADE = "Run: durable-pg upgrade (as the migration login, on this database)."
_UTF8 = "Connect with client_encoding=UTF8."
_LOST = "connection lost"
# The server ends the session, on purpose or in a crash: what it was doing may be done.
_SESSION_ENDS = ("57P01", "57P02", "57P03", "57P05", "25P03", "25P04", "08")
_OF_OTHERS = {
    **dict.fromkeys(("declare_tools", "set_tool"), "operator"),
    **dict.fromkeys(("list_resumable", "reap_runs"), "maintainer"),
}
_STATEMENT_UNDONE: dict[str, tuple[type[errors.ConnectionFault], str]] = {
    "57014": (errors.CallCancelled, "The database undid the statement. Raise statement_timeout, or try again."),
    "55P03": (errors.LockTimeout, "Another call holds the session or the run: try again."),
    "40001": (errors.TryAgain, "Repeat the whole transaction."),
    "40P01": (errors.TryAgain, "Repeat the whole transaction."),
    "25006": (
        errors.ReadOnly,
        "A standby, or a read-only transaction? target_session_attrs=read-write finds a primary.",
    ),
}


def translate(error: BaseException, call: Call[Any], *, undone_with_connection: bool = False) -> errors.DurableError:
    """Our error for one that a call has raised.

    `undone_with_connection`: the call was part of a transaction that is not committed, so it goes with the connection.
    """
    state = sqlstate(error)
    nothing_done = undone_with_connection or not call.writes
    facts: dict[str, Any] = {
        "detail": diagnostic(error, "message_detail"),
        "hint": diagnostic(error, "message_hint"),
        "schema": diagnostic(error, "schema_name"),
        "table": diagnostic(error, "table_name"),
        "column": diagnostic(error, "column_name"),
        "constraint": diagnostic(error, "constraint_name"),
        "call": call.name,
        "names": call.names,
    }
    message = primary_message(error)
    if state is None:
        return _without_sqlstate(error, message, facts, may_have_taken_effect=not nothing_done)
    facts["sqlstate"] = state
    if state in errors.BY_SQLSTATE:
        return errors.BY_SQLSTATE[state](message, **facts)
    severity = diagnostic(error, "severity_nonlocalized")
    if severity in {"FATAL", "PANIC"}:
        # The session ends with it, of whatever kind it is: what it was doing may be done, written and replayed.
        return errors.ConnectionLost(message, may_have_taken_effect=not nothing_done, **facts)
    if state in _STATEMENT_UNDONE:
        kind, hint = _STATEMENT_UNDONE[state]
        return kind(message, **{**facts, "hint": facts["hint"] or hint})
    if state.startswith(_SESSION_ENDS):
        return errors.ConnectionLost(message, may_have_taken_effect=not nothing_done, **facts)
    if state == "25P02":
        facts["hint"] = "An earlier statement failed: roll back, or make calls that may fail inside a savepoint."
    return _setup_error(state, message, facts) or errors.UnexpectedError(message, **facts)


def not_sent(error: BaseException, call: Call[Any], *, server_failed: bool) -> errors.DurableError:
    """Our error for a pool that gave no connection.

    `server_failed`: since it gave one for the last time, it has tried to make one in vain.
    """
    facts: dict[str, Any] = {"call": call.name, "names": call.names}
    if isinstance(error, PoolClosed):
        return errors.PoolNotOpen(
            "the pool is not open", hint="Use `async with` (or `with`) on the client, or call its open().", **facts
        )
    if isinstance(error, TooManyRequests) or (isinstance(error, PoolTimeout) and not server_failed):
        return errors.PoolExhausted(
            str(error), hint="Give back connections sooner, or raise max_size or timeout of the pool.", **facts
        )
    hint = "The server does not answer, or refuses: the log of psycopg.pool has each attempt."
    return errors.CannotConnect(primary_message(error), sqlstate=sqlstate(error), hint=hint, **facts)


def not_accepted(error: Exception, call: Call[Any]) -> errors.DurableError:
    """Our error for a connection of SQLAlchemy that takes no statement as it is. Nothing was sent."""
    facts: dict[str, Any] = {"call": call.name, "names": call.names}
    if isinstance(error, ResourceClosedError):
        return errors.ConnectionLost("the connection is closed", **facts)
    if isinstance(error, PendingRollbackError):
        return errors.ConnectionLost(
            "the connection was lost earlier", hint="Roll its transaction back before you use it again.", **facts
        )
    return errors.UnexpectedError(str(error), **facts)


def not_encodable(call: Call[Any]) -> errors.SetupError:
    """Our error for text that the connection's client_encoding doesn't have. The driver's own holds the text."""
    return errors.SetupError(
        "the client_encoding of this connection can't carry the text of this call",
        hint=_UTF8,
        call=call.name,
        names=call.names,
    )


def _without_sqlstate(
    error: BaseException, message: str, facts: dict[str, Any], *, may_have_taken_effect: bool
) -> errors.DurableError:
    """What libpq and the drivers say themselves: mostly that the connection is gone."""
    if isinstance(error, psycopg.errors.PipelineAborted):
        return errors.UnexpectedError(message, **facts)
    if _is_about_connection(error):
        return errors.ConnectionLost(message or _LOST, may_have_taken_effect=may_have_taken_effect, **facts)
    return errors.UnexpectedError(message, may_have_taken_effect=may_have_taken_effect, **facts)


def _is_about_connection(error: BaseException) -> bool:
    original: Any = getattr(error, "orig", None) or error
    names = {kind.__name__ for kind in type(original).__mro__}
    return bool(names & {"OperationalError", "InterfaceError", "OSError"}) or bool(
        getattr(error, "connection_invalidated", False)
    )


def _setup_error(state: str, message: str, facts: dict[str, Any]) -> errors.SetupError | None:
    if state == "22P05":
        return errors.SetupError(
            "the client_encoding of this connection can't carry the answer",
            **{**facts, "detail": message, "hint": _UTF8},
        )
    if state == "3F000":
        return errors.SchemaMissing(
            "durable_pg is not installed in this database", **{**facts, "detail": message, "hint": _UPGRADE}
        )
    if state == "42703" or (state == "42883" and "durable." in message):
        return errors.SchemaOlder(
            "the schema of durable_pg is older than this client", **{**facts, "detail": message, "hint": _UPGRADE}
        )
    if state == "42501" and "row-level security" not in message:
        return errors.RoleMissing(
            "this login may not make this call",
            **{
                **facts,
                "detail": message,
                "hint": _role_hint(facts["call"]),
            },
        )
    return None


def _role_hint(call: str) -> str:
    role = _OF_OTHERS.get(call, "app")
    hint = (
        f"This call needs a login in durable_{role}; durable-pg upgrade --{role}-login NAME makes one of a login"
        " without a front role."
    )
    return f"{hint} People on call and auditors have durable-pg runs and sessions." if role == "app" else hint
