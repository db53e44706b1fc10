"""An error of psycopg, psycopg_pool or SQLAlchemy -> one of ours, with what is certain about the call's effect."""

from __future__ import annotations

import selectors
from typing import Any

import psycopg
from psycopg.pq import ConnStatus
from psycopg_pool import PoolClosed, PoolTimeout

from durable_pg import errors
from durable_pg._calls import Call
from durable_pg._diagnostics import diagnostic, primary_message, sqlstate

_UPGRADE = "Run: durable-pg upgrade (as the migration login, on this database)."
_LOST = "connection lost"
# The server ends the session, on purpose or in a crash: what it was doing may be done.
_SESSION_ENDS = ("57P01", "57P02", "57P03", "57P05", "08")
_STATEMENT_UNDONE: dict[str, tuple[type[errors.ConnectionFault], str]] = {
    "57014": (errors.CallCancelled, "The database undid the statement. Raise statement_timeout, or try again."),
    "55P03": (errors.LockTimeout, "Another call holds the session or the run: try again."),
    "40001": (errors.TryAgain, "Repeat the whole transaction."),
    "40P01": (errors.TryAgain, "Repeat the whole transaction."),
}


def translate(error: BaseException, call: Call[Any], *, undone_with_connection: bool = False) -> errors.DurableError:
    """Our error for one that a call has raised.

    `undone_with_connection`: the call was part of a transaction that is not committed, so it goes with the connection.
    """
    state = sqlstate(error)
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
        return _without_sqlstate(error, message, facts, undone_with_connection)
    facts["sqlstate"] = state
    if state in errors.BY_SQLSTATE:
        return errors.BY_SQLSTATE[state](message, **facts)
    if state in _STATEMENT_UNDONE:
        kind, hint = _STATEMENT_UNDONE[state]
        return kind(message, **{**facts, "hint": facts["hint"] or hint})
    if state.startswith(_SESSION_ENDS):
        return errors.ConnectionLost(message, may_have_taken_effect=not undone_with_connection, **facts)
    return _setup_error(state, message, facts) or errors.UnexpectedError(message, **facts)


def not_sent(error: BaseException, call: Call[Any], *, server_failed: bool) -> errors.DurableError:
    """Our error for a pool that gave no connection; `server_failed`: it tried to make one meanwhile, in vain."""
    facts: dict[str, Any] = {"call": call.name, "names": call.names}
    if isinstance(error, PoolClosed):
        return errors.PoolNotOpen(
            "the pool is not open", hint="Use `async with` (or `with`) on the client, or call its open().", **facts
        )
    if isinstance(error, PoolTimeout) and not server_failed:
        return errors.PoolExhausted(
            str(error), hint="Give back connections sooner, or raise max_size or timeout of the pool.", **facts
        )
    hint = "The server does not answer, or refuses: the log of psycopg.pool has each attempt."
    return errors.CannotConnect(primary_message(error), sqlstate=sqlstate(error), hint=hint, **facts)


def is_alive(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether nothing is known to have ended an idle connection. Asks the socket and not the server: no round trip.

    A server that went away has left its farewell, or the end of the stream, to be read.
    """
    pgconn = connection.pgconn
    if pgconn.status != ConnStatus.OK:
        return False
    with selectors.DefaultSelector() as selector:
        selector.register(pgconn.socket, selectors.EVENT_READ)
        # A few rounds: the farewell comes first, then the end. Whoever is alive has next to nothing to say.
        for _ in range(8):
            if not selector.select(0):
                break
            try:
                pgconn.consume_input()
            except psycopg.OperationalError:
                return False
    return pgconn.status == ConnStatus.OK


def _without_sqlstate(
    error: BaseException, message: str, facts: dict[str, Any], undone_with_connection: bool
) -> errors.DurableError:
    """What libpq and the drivers say themselves: mostly that the connection is gone."""
    if isinstance(error, psycopg.errors.PipelineAborted):
        return errors.UnexpectedError(message, **facts)
    if _is_about_connection(error):
        return errors.ConnectionLost(message or _LOST, may_have_taken_effect=not undone_with_connection, **facts)
    return errors.UnexpectedError(message, may_have_taken_effect=not undone_with_connection, **facts)


def _is_about_connection(error: BaseException) -> bool:
    original: Any = getattr(error, "orig", None) or error
    names = {kind.__name__ for kind in type(original).__mro__}
    return bool(names & {"OperationalError", "InterfaceError", "OSError"}) or bool(
        getattr(error, "connection_invalidated", False)
    )


def _setup_error(state: str, message: str, facts: dict[str, Any]) -> errors.SetupError | None:
    if state == "3F000":
        return errors.SchemaMissing(
            "durable_pg is not installed in this database", **{**facts, "detail": message, "hint": _UPGRADE}
        )
    if (state in {"42883", "42703", "42704"} and "durable." in message + facts["detail"]) or state == "42703":
        return errors.SchemaOlder(
            "the schema of durable_pg is older than this client", **{**facts, "detail": message, "hint": _UPGRADE}
        )
    if state == "42501":
        return errors.RoleMissing(
            "this login may not make this call",
            **{
                **facts,
                "detail": message,
                "hint": "Connect as a login in durable_app; durable-pg upgrade --app-login NAME makes it one.",
            },
        )
    return None
