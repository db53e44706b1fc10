"""Events as they stand: what was said, and what rewinds took back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, RowMapping, func, select
from sqlalchemy.engine import Connection

from durable_pg.cli.read.json_text import JsonText, as_json, sent
from durable_pg.cli.read.view import in_utc
from durable_pg.tables import events


@dataclass(frozen=True)
class LoggedEvent:
    """One entry of a session's log. `rewound_by` is the seq of the rewind that took it back, if one did."""

    seq: int
    event_id: str
    invocation_id: str | None
    generation: int
    attempt: int | None
    author: str
    opening: bool
    repeatable: bool
    content: JsonText | None
    metadata: JsonText
    tool_calls: tuple[str, ...]
    extra_tool_calls: tuple[str, ...]
    occurred_at: datetime
    recorded_at: datetime
    rewind_to: int | None
    rewound_by: int | None


@dataclass(frozen=True)
class Rewind:
    """That the event `seq` took back everything from `to` on."""

    seq: int
    to: int


def read_rewinds(connection: Connection, tenant: str, session: UUID) -> list[Rewind]:
    """Read the rewinds of a session that are not taken back themselves, newest first."""
    query = (
        select(events.c.seq, events.c.rewind_to)
        .where(_of(tenant, session), events.c.rewind_to.is_not(None))
        .order_by(events.c.seq.desc())
    )
    standing: list[Rewind] = []
    before: int | None = None
    for seq, to in connection.execute(query):
        if before is None or seq < before:
            standing.append(Rewind(seq, to))
            before = to
    return standing


def rewound_by(seq: int, standing: Iterable[Rewind]) -> int | None:
    """Return the seq of the rewind that took this one back; None while it stands."""
    return next((rewind.seq for rewind in standing if rewind.to <= seq < rewind.seq), None)


def read_latest(
    connection: Connection,
    tenant: str,
    session: UUID,
    *conditions: ColumnElement[bool],
    rewinds: Sequence[Rewind],
    latest: int | None,
) -> tuple[tuple[LoggedEvent, ...], int]:
    """Return the latest events of a session that fulfil the conditions, in order of seq, and how many there are."""
    if latest == 0:
        latest = None
    wanted = (_of(tenant, session), *conditions)
    query = select(*_COLUMNS).where(*wanted).order_by(events.c.seq.desc())
    if latest is not None:
        query = query.limit(latest)
    found = tuple(_event(row, rewinds) for row in reversed(connection.execute(query).mappings().all()))
    if latest is None or len(found) < latest:
        return found, len(found)
    return found, connection.execute(select(func.count()).select_from(events).where(*wanted)).scalar_one()


_COLUMNS: tuple[ColumnElement[Any], ...] = (
    *(events.c[name] for name in ("seq", "event_id", "invocation_id", "generation", "attempt", "author")),
    *(events.c[name] for name in ("opening", "repeatable", "tool_calls", "extra_tool_calls", "rewind_to")),
    *(events.c[name] for name in ("occurred_at", "recorded_at")),
    sent(events.c.content).label("content"),
    sent(events.c.metadata).label("metadata"),
)


def _of(tenant: str, session: UUID) -> ColumnElement[bool]:
    return (events.c.tenant_id == tenant) & (events.c.session_uid == session)


def _event(row: RowMapping, rewinds: Sequence[Rewind]) -> LoggedEvent:
    given: dict[str, Any] = dict(row)
    given.update(
        content=as_json(row["content"]),
        metadata=JsonText(row["metadata"]),
        tool_calls=tuple(row["tool_calls"]),
        extra_tool_calls=tuple(row["extra_tool_calls"]),
        occurred_at=in_utc(row["occurred_at"]),
        recorded_at=in_utc(row["recorded_at"]),
        rewound_by=rewound_by(row["seq"], rewinds),
    )
    return LoggedEvent(**given)
