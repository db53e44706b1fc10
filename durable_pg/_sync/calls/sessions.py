# Generated from _async/calls/sessions.py by tools/async_to_sync.py: change that.
"""What one user may do with sessions and events. One method a function of the SQL interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from durable_pg._sync.calls.caller import Caller
from durable_pg._wire import values as given
from durable_pg._wire.statements import Who, listing, looking, refusals_of, writing
from durable_pg.types import AnySession, AppendedEvent, Event, Session, State, Verification


class Sessions(Caller[Who]):
    """The calls about sessions."""

    def open_session(
        self, app_name: str, session_id: str | None = None, state: Mapping[str, Any] | None = None
    ) -> Session:
        """Create the session of this app and name, or find it when it is open; outcome created or found.

        Without `session_id` the database makes one up. `state`: JSON; keys beginning with app: and user: go to the
        shared states. Raises IdentifierInvalid (22W01), JsonNotStorable (22W02), ArgumentInvalid (22W03),
        SessionDiffers (23W09).
        """
        with refusals_of("open_session", self._who):
            parameters = {
                "app_name": given.identifier("app_name", app_name),
                "session_id": given.optional_identifier("session_id", session_id),
                "state": given.optional_object("state", state),
            }
        # Without a name each call makes another session.
        return self._fetch(writing("open_session", self._who, parameters, Session, repeatable=session_id is not None))

    def close_session(self, session: AnySession, reason: str | None = None) -> Session:
        """Hide the session and free its name; outcome closed or already_closed.

        Raises ArgumentInvalid (22W03), SessionNotFound (42W04).
        """
        with refusals_of("close_session", self._who):
            parameters = {"session_uid": given.session_uid(session), "reason": given.optional_text("reason", reason)}
        return self._fetch(writing("close_session", self._who, parameters, Session, repeatable=True))

    def list_sessions(self, app_name: str | None = None) -> list[Session]:
        """The open sessions, of one app or of all."""
        with refusals_of("list_sessions", self._who):
            parameters = {"app_name": given.optional_identifier("app_name", app_name)}
        return self._fetch(listing("list_sessions", self._who, parameters, Session))

    def get_state(self, app_name: str | None = None, session: AnySession | None = None) -> State:
        """The merged state of a session, or of `app_name` and the user alone.

        Raises IdentifierInvalid (22W01), SessionNotFound (42W04), SessionClosed (55W01).
        """
        with refusals_of("get_state", self._who):
            parameters = {
                "app_name": given.optional_identifier("app_name", app_name),
                "session_uid": given.optional_session_uid(session),
            }
        return self._fetch(looking("get_state", self._who, parameters, State))

    def append_event(
        self,
        session: AnySession,
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
        with refusals_of("append_event", self._who):
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
        # An empty event_id counts as none. An opening message needs none either, but only the database can tell it.
        return self._fetch(writing("append_event", self._who, parameters, AppendedEvent, repeatable=bool(event_id)))

    def read_events(
        self,
        session: AnySession,
        *,
        after_seq: int | None = None,
        latest: int | None = None,
        after_time: datetime | None = None,
    ) -> list[Event]:
        """The events of a session in order of seq: all, those after a seq, those that occurred at or after a time.

        `latest`: only the last so many of these. Raises ArgumentInvalid (22W03), SessionNotFound (42W04),
        SessionClosed (55W01).
        """
        with refusals_of("read_events", self._who):
            parameters = {
                "session_uid": given.session_uid(session),
                "after_seq": given.optional_integer("after_seq", after_seq),
                "latest": given.optional_integer("latest", latest),
                "after_time": given.optional_time("after_time", after_time),
            }
        return self._fetch(listing("read_events", self._who, parameters, Event))

    def verify_session(self, session: AnySession) -> Verification:
        """Recompute the hash chain and say where it breaks first, if it does.

        Raises ArgumentInvalid (22W03), SessionNotFound (42W04).
        """
        with refusals_of("verify_session", self._who):
            parameters = {"session_uid": given.session_uid(session)}
        return self._fetch(looking("verify_session", self._who, parameters, Verification))
