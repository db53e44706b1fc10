"""What every error of the client carries, and the errors that no SQLSTATE of durable_pg stands for.

errors.py, which is generated, adds a class for each SQLSTATE and is the module to import from.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

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
