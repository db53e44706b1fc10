# Generated from sessions_async.py by tools/async_to_sync.py: change that.
"""What one user may do with sessions and events. One method a function of the SQL interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from durable_pg._client import calls, io
from durable_pg.types import AppendedEvent, Event, Session, State, Verification


class Caller:
    """A way to the database, and who calls."""

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


class Sessions(Caller):
    """The calls about sessions."""

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
        aware; default now. `expected_revision`: refuse if the session has moved on. `attempt`: of the
        run; needed while it is running, but for an event by `user`.

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
