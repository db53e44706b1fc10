"""Runs: the newest, one by its uid, and what happened in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Subquery, Text, and_, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Connection

from durable_pg.cli.read.events import LoggedEvent, read_latest, read_rewinds
from durable_pg.cli.read.json_text import JsonText, as_json, sent
from durable_pg.cli.read.pages import SHORTEST, among, as_range, newest, within
from durable_pg.cli.read.view import Ambiguous, NotFound, in_utc, now
from durable_pg.command_errors import BadRequest
from durable_pg.tables import events, runs, sessions, transitions
from durable_pg.types import Verdict

# A uid is made a moment before started_at is read, and a clock may be set back.
_SLACK = timedelta(minutes=1)
_CANDIDATES = 10


@dataclass(frozen=True)
class RunSummary:
    """A run in a list. `tools_executed` is None as long as nobody knows; `duration` until it is settled.

    `lease_over`: its status is still running, but nobody holds it any more, so that start_run takes it up.
    `lease_expires_at` is then since when it waits, as it is for an interrupted run.
    """

    tenant_id: str
    run_uid: UUID
    status: str
    invocation_id: str
    generation: int
    attempt: int
    max_attempts: int | None
    lease_holder: str | None
    lease_expires_at: datetime
    lease_over: bool
    trigger: str
    session_uid: UUID
    app_name: str
    session_id: str
    user_id: str
    started_at: datetime
    settled_at: datetime | None
    duration: timedelta | None
    tools_executed: tuple[str, ...] | None


@dataclass(frozen=True)
class RunDetails(RunSummary):
    """A run with what went in and what came out. `attempts_left` is None where there is no limit."""

    attempts_left: int | None
    session_closed_at: datetime | None
    input: JsonText | None
    result: JsonText | None
    error: JsonText | None
    interrupted_with: JsonText | None


@dataclass(frozen=True)
class Timeline:
    """A run and the events of its invocation, in order of seq.

    `events` may be only the latest of `events_recorded`. Events of an earlier generation are among them as long as they
    stand: verdicts count them too. `tools_recorded` is what log and ledger hold so far, None where that tells nothing.
    `read_at` is the database's time.
    """

    run: RunDetails
    events: tuple[LoggedEvent, ...]
    events_recorded: int
    tools_recorded: tuple[str, ...] | None
    retry_verdict: Verdict
    replay_verdict: Verdict
    read_at: datetime


def list_runs(
    connection: Connection,
    *,
    tenant: str | None = None,
    user: str | None = None,
    app: str | None = None,
    session: UUID | None = None,
    status: str | None = None,
    since: datetime | None = None,
    limit: int | None = 50,
) -> tuple[RunSummary, ...]:
    """Return the newest runs that the connection may see, newest first.

    `tenant` None: of all tenants. A run whose lease is over is found as interrupted, not as running.
    Raises BadRequest for a status that runs can't have.
    """
    conditions = _conditions(user=user, session=session, status=status, since=since)
    if app is not None:
        conditions.append(sessions.c.app_name == app)
    if status is not None:
        _check_status(connection, status)
    # No index of runs begins with the user: a user's few runs are found by way of the sessions.
    joined = _WITH_SESSION if app is not None or user is not None else None
    if user is not None:
        conditions.append(sessions.c.user_id == user)
    keys = newest(runs, "run_uid", conditions, tenant=tenant, limit=limit, joined=joined)
    return tuple(RunSummary(**_row(row)) for row in connection.execute(_select(_ROW, keys)).mappings())


def find_run(connection: Connection, uid: str, *, tenant: str | None = None, user: str | None = None) -> RunDetails:
    """Return the run of this uid, or of the only one that begins with it (at least 8 characters).

    Raises NotFound, the same for a run that this connection may not see; Ambiguous, naming candidates; BadRequest.
    """
    bounds = as_range(uid)
    if bounds is None:
        raise BadRequest(
            f"{uid} is no run's uid", hint=f"Give the run_uid, or at least its first {SHORTEST} characters (0-9, a-f)."
        )
    conditions = [*_conditions(user=user), within(runs.c.run_uid, bounds)]
    keys = newest(runs, "run_uid", conditions, tenant=tenant, limit=_CANDIDATES + 1)
    found = [_run(row) for row in connection.execute(_select(_ALL, keys)).mappings()]
    if not found:
        raise NotFound(
            f"there is no run {uid} here",
            hint="Check database, tenant and user; durable-pg runs list shows the runs that this login sees.",
        )
    if len(found) > 1:
        lines = [f"{run.run_uid}  {run.started_at:%Y-%m-%d %H:%M:%S} UTC  {run.status}" for run in found[:_CANDIDATES]]
        more = "\nand more" if len(found) > _CANDIDATES else ""
        hint = "Give more characters: runs that began together have uids that begin alike."
        raise Ambiguous(f"several runs begin with {uid}", detail="\n".join(lines) + more, hint=hint)
    return found[0]


def read_timeline(connection: Connection, run: RunDetails, *, latest: int | None = None) -> Timeline:
    """Return what is recorded of the run's invocation; of its events only the latest so many, None for all."""
    rewinds = read_rewinds(connection, run.tenant_id, run.session_uid)
    ours = [events.c.invocation_id == run.invocation_id]
    if rewinds:
        standing = and_(*(~events.c.seq.between(rewind.to, rewind.seq - 1) for rewind in rewinds))
        ours.append(or_(events.c.generation == run.generation, standing))
    else:
        ours.append(events.c.generation == run.generation)
    found, recorded = read_latest(connection, run.tenant_id, run.session_uid, *ours, rewinds=rewinds, latest=latest)
    return Timeline(
        run,
        found,
        recorded,
        _recorded_tools(connection, run),
        _verdict(connection, func.durable.retry_verdict, run.run_uid),
        _verdict(connection, func.durable.replay_verdict, run.run_uid),
        now(connection),
    )


def _recorded_tools(connection: Connection, run: RunDetails) -> tuple[str, ...] | None:
    whole_row: Any = runs.table_valued()
    found: Any = connection.execute(
        select(func.durable.recorded_tools(whole_row, type_=ARRAY(Text))).where(
            runs.c.tenant_id == run.tenant_id, runs.c.run_uid == run.run_uid
        )
    ).scalar_one()
    return None if found is None else tuple(found)


def _verdict(connection: Connection, function: Any, run: UUID) -> Verdict:
    answer = function(None, run).table_valued("allowed", "reason", "tools")
    row = connection.execute(select(answer.c.allowed, answer.c.reason, answer.c.tools)).one()
    return Verdict(row.allowed, row.reason, list(row.tools))


def _conditions(
    *, user: str | None = None, session: UUID | None = None, status: str | None = None, since: datetime | None = None
) -> list[ColumnElement[bool]]:
    given = ((runs.c.user_id, user), (runs.c.session_uid, session))
    conditions: list[ColumnElement[bool]] = [column == value for column, value in given if value is not None]
    if status == "interrupted":
        conditions.append(or_(runs.c.status == status, _LEASE_OVER))
    elif status is not None:
        conditions.append(and_(runs.c.status == status, ~_LEASE_OVER))
    if since is not None:
        first = max(int((since - _SLACK).timestamp() * 1000), 0)
        conditions += [runs.c.run_uid >= UUID(int=first << 80), runs.c.started_at >= since]
    return conditions


def _select(columns: Sequence[ColumnElement[Any]], keys: Subquery) -> Select[Any]:
    found = keys.join(_WITH_SESSION, among(keys, runs, "run_uid"))
    return select(*columns).select_from(found).order_by(runs.c.run_uid.desc())


def _check_status(connection: Connection, status: str) -> None:
    known: Sequence[str] = (
        connection.execute(
            select(transitions.c.to_status)
            .where(transitions.c.entity == "run")
            .distinct()
            .order_by(transitions.c.to_status)
        )
        .scalars()
        .all()
    )
    if status not in known:
        raise BadRequest(f"a run's status is never {status}", hint=f"It is one of: {', '.join(known)}.")


def _row(row: Any) -> dict[str, Any]:
    given = dict(row)
    for name in given.keys() & {"started_at", "settled_at", "lease_expires_at", "session_closed_at"}:
        given[name] = in_utc(given[name])
    if given["tools_executed"] is not None:
        given["tools_executed"] = tuple(given["tools_executed"])
    return given


def _run(row: Any) -> RunDetails:
    given = _row(row)
    given.update({name: as_json(given[name]) for name in _JSON})
    return RunDetails(**given)


# By the database's clock, as start_run sees it; the tables say interrupted only when somebody has reaped it.
_LEASE_OVER = and_(runs.c.status == "running", runs.c.lease_expires_at <= func.clock_timestamp())
_WITH_SESSION = runs.join(
    sessions, and_(sessions.c.tenant_id == runs.c.tenant_id, sessions.c.session_uid == runs.c.session_uid)
)
_ROW: tuple[ColumnElement[Any], ...] = (
    *(runs.c[name] for name in ("tenant_id", "run_uid", "status", "invocation_id", "generation", "attempt")),
    *(runs.c[name] for name in ("max_attempts", "lease_holder", "lease_expires_at", "trigger")),
    _LEASE_OVER.label("lease_over"),
    *(runs.c.session_uid, sessions.c.app_name, sessions.c.session_id, runs.c.user_id),
    *(runs.c.started_at, runs.c.settled_at, (runs.c.settled_at - runs.c.started_at).label("duration")),
    runs.c.tools_executed,
)
_JSON = ("input", "result", "error", "interrupted_with")
_ALL = (
    *_ROW,
    (runs.c.max_attempts - (runs.c.attempt - runs.c.first_attempt + 1)).label("attempts_left"),
    sessions.c.closed_at.label("session_closed_at"),
    *(sent(runs.c[name]).label(name) for name in _JSON),
)
