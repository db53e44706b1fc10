"""Sessions: a list, one by uid or by name, and whether its log is as it was written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, func, select, tuple_
from sqlalchemy.engine import Connection

from durable_pg.cli.read.events import LoggedEvent, read_latest, read_rewinds
from durable_pg.cli.read.json_text import JsonText, sent
from durable_pg.cli.read.pages import SHORTEST, among, as_range, newest, within
from durable_pg.cli.read.runs import RunSummary, list_runs
from durable_pg.cli.read.view import Ambiguous, NotFound, in_utc, now
from durable_pg.command_errors import BadRequest
from durable_pg.tables import sessions

_CANDIDATES = 10


@dataclass(frozen=True)
class SessionSummary:
    """A session in a list; `last_seq` is the number of its events."""

    tenant_id: str
    session_uid: UUID
    app_name: str
    session_id: str
    user_id: str
    revision: int
    last_seq: int
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None
    close_reason: str | None


@dataclass(frozen=True)
class SessionDetails(SessionSummary):
    """A session with its own state (not the app's and the user's, which it shares) and the head of its log."""

    state: JsonText
    head_hash: str | None
    rewinds: int


@dataclass(frozen=True)
class SessionOverview:
    """A session, its newest runs, and its latest events in order of seq. `read_at` is the database's time."""

    session: SessionDetails
    runs: tuple[RunSummary, ...]
    events: tuple[LoggedEvent, ...]
    read_at: datetime


@dataclass(frozen=True)
class VerifiedSession:
    """What verify_session found: `broken_seq` and `problem` are None for an intact log."""

    tenant_id: str
    session_uid: UUID
    app_name: str
    session_id: str
    user_id: str
    intact: bool
    events_checked: int
    broken_seq: int | None
    problem: str | None


def list_sessions(
    connection: Connection,
    *,
    tenant: str | None = None,
    user: str | None = None,
    app: str | None = None,
    closed: bool = False,
    limit: int = 50,
) -> tuple[SessionSummary, ...]:
    """Return the open sessions, or the closed ones, that the connection may see, latest activity first."""
    given = ((sessions.c.tenant_id, tenant), (sessions.c.user_id, user), (sessions.c.app_name, app))
    query = (
        select(*_ROW)
        .where(*(column == value for column, value in given if value is not None))
        .where(sessions.c.closed_at.is_not(None) if closed else sessions.c.closed_at.is_(None))
        .order_by(sessions.c.updated_at.desc(), sessions.c.session_uid.desc())
        .limit(limit)
    )
    return tuple(SessionSummary(**_row(row)) for row in connection.execute(query).mappings())


def find_session(
    connection: Connection, name: str, *, tenant: str | None = None, user: str | None = None
) -> SessionDetails:
    """Return the session of this uid (or its beginning), or of this name, written APP/SESSION_ID.

    A name means the open session; if there is none, the last that was closed. Raises NotFound, the same for a session
    that this connection may not see; Ambiguous when it is the name of several users' sessions; BadRequest.
    """
    conditions = [sessions.c.user_id == user] if user is not None else []
    if "/" in name:
        parts = name.split("/")
        names = [("/".join(parts[:place]), "/".join(parts[place:])) for place in range(1, len(parts))]
        conditions.append(tuple_(sessions.c.app_name, sessions.c.session_id).in_(names))
        found = _find(connection, [*conditions, sessions.c.closed_at.is_(None)], tenant)
        found = found or _last_closed(_find(connection, conditions, tenant))
    else:
        bounds = as_range(name)
        if bounds is None:
            raise BadRequest(
                f"{name} is no session",
                hint=f"Give APP/SESSION_ID, or the session_uid, or at least its first {SHORTEST} characters.",
            )
        found = _find(connection, [*conditions, within(sessions.c.session_uid, bounds)], tenant)
    if not found:
        hint = "Check database, tenant and user; durable-pg sessions list shows the sessions that this login sees."
        raise NotFound(f"there is no session {name} here", hint=hint)
    if len(found) > 1:
        lines = [
            f"{s.session_uid}  {s.tenant_id} {s.user_id}  {s.app_name}/{s.session_id}" for s in found[:_CANDIDATES]
        ]
        more = "\nand more" if len(found) > _CANDIDATES else ""
        hint = "Give the uid, or whose it is (--tenant, --user)."
        raise Ambiguous(f"several sessions are meant by {name}", detail="\n".join(lines) + more, hint=hint)
    return found[0]


def read_session(
    connection: Connection, session: SessionDetails, *, runs: int | None = 20, latest: int | None = 10
) -> SessionOverview:
    """Return the session with its newest runs and latest events (None for all)."""
    rewinds = read_rewinds(connection, session.tenant_id, session.session_uid) if session.rewinds else []
    found, _ = read_latest(connection, session.tenant_id, session.session_uid, rewinds=rewinds, latest=latest)
    its = list_runs(connection, tenant=session.tenant_id, session=session.session_uid, limit=runs)
    return SessionOverview(session, its, found, now(connection))


def page_of_sessions(
    connection: Connection,
    *,
    tenant: str | None = None,
    user: str | None = None,
    after: SessionSummary | None = None,
    limit: int = 1000,
) -> tuple[SessionSummary, ...]:
    """Return a page of all sessions, closed ones too, in the order of tenant and uid: those after the given one."""
    given = ((sessions.c.tenant_id, tenant), (sessions.c.user_id, user))
    conditions: list[ColumnElement[bool]] = [column == value for column, value in given if value is not None]
    place = tuple_(sessions.c.tenant_id, sessions.c.session_uid)
    if after is not None:
        conditions.append(place > tuple_(after.tenant_id, after.session_uid))
    query = select(*_ROW).where(*conditions).order_by(*place.clauses).limit(limit)
    return tuple(SessionSummary(**_row(row)) for row in connection.execute(query).mappings())


def verify_session(connection: Connection, session: SessionSummary) -> VerifiedSession:
    """Recompute the chain of a session's log from its rows."""
    answer = func.durable.verify_session(None, session.session_uid).table_valued(
        "intact", "events_checked", "broken_seq", "problem"
    )
    row = connection.execute(select(*answer.c)).one()
    its = (session.tenant_id, session.session_uid, session.app_name, session.session_id, session.user_id)
    return VerifiedSession(*its, *row)


def _find(connection: Connection, conditions: list[ColumnElement[bool]], tenant: str | None) -> list[SessionDetails]:
    keys = newest(sessions, "session_uid", conditions, tenant=tenant, limit=_CANDIDATES + 1)
    query = select(*_ALL).select_from(keys.join(sessions, among(keys, sessions, "session_uid")))
    query = query.order_by(sessions.c.session_uid.desc())
    return [_session(row) for row in connection.execute(query).mappings()]


def _last_closed(found: list[SessionDetails]) -> list[SessionDetails]:
    # One user's sessions of one name follow each other; uids are ordered by time, newest first here.
    last: dict[tuple[str, str], SessionDetails] = {}
    for session in found:
        last.setdefault((session.tenant_id, session.user_id), session)
    return list(last.values())


def _row(row: Any) -> dict[str, Any]:
    given = dict(row)
    for name in ("created_at", "updated_at", "closed_at"):
        given[name] = in_utc(given[name])
    return given


def _session(row: Any) -> SessionDetails:
    given = _row(row)
    given["state"] = JsonText(given["state"])
    return SessionDetails(**given)


_ROW: tuple[ColumnElement[Any], ...] = (
    *(sessions.c[name] for name in ("tenant_id", "session_uid", "app_name", "session_id", "user_id", "revision")),
    *(sessions.c[name] for name in ("last_seq", "created_at", "updated_at", "closed_at", "close_reason")),
)
_ALL = (
    *_ROW,
    sent(sessions.c.state).label("state"),
    func.encode(sessions.c.head_hash, "hex").label("head_hash"),
    sessions.c.rewinds,
)
