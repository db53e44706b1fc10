# Generated from client_async.py by tools/async_to_sync.py: change that.
"""The client: one method a function of the SQL interface, each one statement and one round trip.

client.py is generated from client.py, the synchronous `Durable` from `Durable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any
from uuid import UUID

from psycopg_pool import ConnectionPool

from durable_pg._client import calls, io
from durable_pg.types import AppendedEvent, Event, FinalStatus, Run, RunOutcome, Session, State, Verdict, Verification

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Durable", "Identity"]


class Durable:
    """A way to a database with durable_pg in it. It holds no identity and makes no object in the database.

    Made of a psycopg pool, which stays the caller's to open and close; see also from_url() and on(). The login should
    be in durable_app; schema and roles come from `durable-pg upgrade`, run by another login.
    """

    def __init__(self, pool: ConnectionPool[Any]) -> None:
        if not isinstance(pool, ConnectionPool):
            raise TypeError(f"a psycopg_pool.ConnectionPool is needed, not {type(pool)!r}; see from_url() and on()")
        self._way: io.Way = io.OnPool(pool)

    @classmethod
    def from_url(cls, url: str | None = None, *, min_size: int = 1, max_size: int = 10, timeout: float = 30.0) -> Self:
        """A client with a pool of its own, opened by `with` or open().

        `url`: postgresql://, postgres://, SQLAlchemy's postgresql+driver:// or libpq's key=value; without it
        DURABLE_PG_URL, then DATABASE_URL, then libpq's PG* variables. `min_size`, `max_size`: connections. `timeout`:
        seconds to wait for a free one. Nothing is prepared on the server and nothing outlives a transaction, so a
        pooler in transaction mode may stand in between. Raises ArgumentInvalid (22W03) for a URL that is none.
        """
        return cls._over(io.OnOwnPool(url, min_size=min_size, max_size=max_size, timeout=timeout))

    @classmethod
    def on(cls, connection: object) -> Self:
        """A client on a psycopg or SQLAlchemy connection of the caller's: calls take part in its transaction.

        None of its settings is changed, nothing is committed, retried or closed. A refusal aborts the transaction, as
        any error does in Postgres: wrap a call in a savepoint (connection.transaction(), begin_nested()) to go on.
        Raises TypeError for anything else.
        """
        return cls._over(io.way_on(connection))

    @classmethod
    def _over(cls, way: io.Way) -> Self:
        durable = cls.__new__(cls)
        durable._way = way  # noqa: SLF001  # our own
        return durable

    def act_as(self, tenant_id: str, user_id: str) -> Identity:
        """The view of one user of one tenant: every call through it carries this identity.

        Raises IdentifierInvalid (22W01) for what is no text; other limits are checked by the first call.
        """
        return Identity(self._way, calls.identify(tenant_id, user_id))

    def open(self) -> None:
        """Open the pool of from_url(), after one connection has shown that the database can be reached.

        Raises CannotConnect with the reason, and PoolNotOpen after close(): make another client then. Does nothing when
        it is open.
        """
        self._way.open()

    def close(self) -> None:
        """Close the pool of from_url(); what the caller brought stays open."""
        self._way.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Identity:
    """What one user of one tenant may do. Made by act_as().

    Every call may be repeated after a crash: what is there already is told in `outcome`. Refusals are subclasses of
    errors.Refused, one a SQLSTATE; broken connections are errors.ConnectionFault, which say whether the call may have
    taken effect. Calls that are repeatable by nature are sent again once by themselves, on a pool only: all but
    start_run, append_event without event_id and open_session without session_id.
    """

    def __init__(self, way: io.Way, who: calls.Who) -> None:
        self._way = way
        self._who = who

    @property
    def tenant_id(self) -> str:
        """The tenant of every call."""
        return self._who.tenant_id

    @property
    def user_id(self) -> str:
        """The user of every call."""
        return self._who.user_id

    def open_session(
        self, app_name: str, session_id: str | None = None, state: Mapping[str, Any] | None = None
    ) -> Session:
        """Create the session of this app and name, or find it when it is open; outcome created or found.

        Without `session_id` the database makes one up. `state`: JSON; keys beginning with app: and user: go to the
        shared states. Raises IdentifierInvalid (22W01), JsonNotStorable (22W02), ArgumentInvalid (22W03),
        SessionDiffers (23W09).
        """
        return io.run(self._way, calls.open_session(self._who, app_name, session_id, state))

    def close_session(self, session: Session | UUID | str, reason: str | None = None) -> Session:
        """Hide the session and free its name; outcome closed or already_closed.

        Raises ArgumentInvalid (22W03), SessionNotFound (42W04).
        """
        return io.run(self._way, calls.close_session(self._who, session, reason))

    def list_sessions(self, app_name: str | None = None) -> list[Session]:
        """The open sessions, of one app or of all."""
        return io.run(self._way, calls.list_sessions(self._who, app_name))

    def get_state(self, app_name: str | None = None, session: Session | UUID | str | None = None) -> State:
        """The merged state of a session, or of `app_name` and the user alone.

        Raises IdentifierInvalid (22W01), SessionNotFound (42W04), SessionClosed (55W01).
        """
        return io.run(self._way, calls.get_state(self._who, app_name, session))

    def append_event(
        self,
        session: Session | UUID | str,
        author: str,
        content: Any = None,
        *,
        invocation_id: str | None = None,
        event_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        state_delta: Mapping[str, Any] | None = None,
        occurred_at: datetime | None = None,
        repeatable: bool = False,
        extra_tool_calls: Sequence[str] | None = None,
        expected_revision: int | None = None,
        attempt: int | None = None,
    ) -> AppendedEvent:
        """Record an event; outcome appended, or duplicate when it is there already and nothing was written.

        `content`: any JSON value, a message in one of the known formats or not. `event_id`: the caller's stable name of
        the event; without one only the opening user message of an invocation is recognised as a repeat. `occurred_at`:
        aware; default now. `expected_revision`: refuse if the session has moved on. `attempt`: of the run.

        Raises IdentifierInvalid (22W01), JsonNotStorable (22W02), ArgumentInvalid (22W03), RewindTargetUnknown (22W04),
        EventDiffers (23W05), OpeningMessageDiffers (23W06), SessionNotFound (42W04), SessionClosed (55W01),
        StaleRevision (55W02), RunSettled (55W03), LeaseLost (55W04), RunOpen (55W08).
        """
        call = calls.append_event(
            self._who,
            session,
            author,
            content,
            invocation_id=invocation_id,
            event_id=event_id,
            metadata=metadata,
            state_delta=state_delta,
            occurred_at=occurred_at,
            repeatable=repeatable,
            extra_tool_calls=extra_tool_calls,
            expected_revision=expected_revision,
            attempt=attempt,
        )
        return io.run(self._way, call)

    def read_events(
        self,
        session: Session | UUID | str,
        *,
        after_seq: int | None = None,
        latest: int | None = None,
        after_time: datetime | None = None,
    ) -> list[Event]:
        """The events of a session in order of seq: all, those after a seq, those that occurred at or after a time.

        `latest`: only the last so many of these. Raises ArgumentInvalid (22W03), SessionNotFound (42W04),
        SessionClosed (55W01).
        """
        call = calls.read_events(self._who, session, after_seq=after_seq, latest=latest, after_time=after_time)
        return io.run(self._way, call)

    def verify_session(self, session: Session | UUID | str) -> Verification:
        """Recompute the hash chain and say where it breaks first, if it does.

        Raises ArgumentInvalid (22W03), SessionNotFound (42W04).
        """
        return io.run(self._way, calls.verify_session(self._who, session))

    def start_run(
        self,
        session: Session | UUID | str,
        invocation_id: str,
        *,
        trigger: str = "user",
        input: Any = None,  # noqa: A002  # the parameter's name in SQL
    ) -> RunOutcome:
        """Start the run of an invocation: go on when outcome is started, stop when it is busy or settled.

        Never sent twice by itself: told ConnectionLost, look with list_runs() before you start it again, since the
        second answer would be busy. Raises IdentifierInvalid (22W01), JsonNotStorable (22W02), ArgumentInvalid (22W03),
        RunInputDiffers (23W07), SessionNotFound (42W04), SessionClosed (55W01).
        """
        call = calls.start_run(self._who, session, invocation_id, trigger=trigger, input=input)
        return io.run(self._way, call)

    def settle_run(
        self,
        run: RunOutcome | Run | UUID | str,
        status: FinalStatus,
        *,
        result: Any = None,
        error: Any = None,
        tools_executed: Sequence[str] | None = None,
        attempt: int | None = None,
    ) -> RunOutcome:
        """End a run for good; outcome settled, or already_settled for an equal repeat.

        `attempt`: taken from the RunOutcome of start_run when not given, but not from one that said busy, whose run is
        another worker's. `tools_executed`: derived from the record when not given.

        Raises JsonNotStorable (22W02), ArgumentInvalid (22W03), WriteOnce (23W02), ToolsIncomplete (23W08),
        RunNotFound (42W05), RunSettled (55W03), LeaseLost (55W04), IsolationRefused (55W05).
        """
        call = calls.settle_run(
            self._who,
            run,
            status,
            result=result,
            error=error,
            tools_executed=tools_executed,
            attempt=attempt,
        )
        return io.run(self._way, call)

    def list_runs(self, session: Session | UUID | str | None = None) -> list[Run]:
        """The runs, of one session or of all."""
        return io.run(self._way, calls.list_runs(self._who, session))

    def retry_verdict(self, run: RunOutcome | Run | UUID | str) -> Verdict:
        """Whether the same turn may be sent to the model again: only while no tool call is recorded.

        Raises ArgumentInvalid (22W03), RunNotFound (42W05), IsolationRefused (55W05).
        """
        return io.run(self._way, calls.retry_verdict(self._who, run))

    def replay_verdict(self, run: RunOutcome | Run | UUID | str) -> Verdict:
        """Whether a settled run may be started anew from its input, and the tools that block it.

        Raises ArgumentInvalid (22W03), RunNotFound (42W05), IsolationRefused (55W05).
        """
        return io.run(self._way, calls.replay_verdict(self._who, run))
