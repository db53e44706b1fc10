"""Effects: the newest, one by its uid, and what somebody has found out about it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Text, cast, func, select, text
from sqlalchemy.engine import Connection

from durable_pg.cli.read.json_text import JsonText, as_json, sent
from durable_pg.cli.read.pages import SHORTEST, among, as_range, newest, within
from durable_pg.cli.read.view import Ambiguous, NotFound, View, WrongLogin, in_utc
from durable_pg.command_errors import BadRequest
from durable_pg.tables import effects

STATUSES = ("begun", "succeeded", "failed", "unverified")
_CANDIDATES = 10


@dataclass(frozen=True)
class EffectDetails:
    """An effect, with its status as it is now: begun and its lease over is unverified."""

    tenant_id: str
    effect_uid: UUID
    status: str
    tool: str
    intent: str | None
    user_id: str
    app_name: str
    run_uid: UUID
    step: int
    ordinal: int
    attempt: int
    failures: int
    idempotency_key: str
    first_begun_at: datetime
    lease_expires_at: datetime
    finished_at: datetime | None
    args: JsonText | None
    result: JsonText | None
    error: JsonText | None
    evidence: JsonText | None


def list_effects(
    connection: Connection,
    *,
    tenant: str | None = None,
    user: str | None = None,
    run: UUID | None = None,
    tool: str | None = None,
    status: str | None = None,
    limit: int | None = 50,
) -> tuple[EffectDetails, ...]:
    """Return the newest effects that the connection may see, newest first.

    `tenant` None: of all tenants. `run`: those that it made first. Raises BadRequest for an unknown status.
    """
    if status is not None and status not in STATUSES:
        raise BadRequest(f"an effect's status is never {status}", hint=f"It is one of: {', '.join(STATUSES)}.")
    given = ((effects.c.user_id, user), (effects.c.run_uid, run), (effects.c.tool, tool), (_STATUS, status))
    conditions = [column == value for column, value in given if value is not None]
    keys = newest(effects, "effect_uid", conditions, tenant=tenant, limit=limit)
    return tuple(_effect(row) for row in connection.execute(_select(keys)).mappings())


def find_effect(
    connection: Connection, uid: str, *, tenant: str | None = None, user: str | None = None
) -> EffectDetails:
    """Return the effect of this uid, or of the only one that begins with it (at least 8 characters).

    Raises NotFound, the same for one that this connection may not see; Ambiguous, naming candidates; BadRequest.
    """
    bounds = as_range(uid)
    if bounds is None:
        raise BadRequest(
            f"{uid} is no effect's uid",
            hint=f"Give the effect_uid, or at least its first {SHORTEST} characters (0-9, a-f).",
        )
    conditions = [within(effects.c.effect_uid, bounds), *([effects.c.user_id == user] if user is not None else [])]
    keys = newest(effects, "effect_uid", conditions, tenant=tenant, limit=_CANDIDATES + 1)
    found = [_effect(row) for row in connection.execute(_select(keys)).mappings()]
    if not found:
        raise NotFound(
            f"there is no effect {uid} here",
            hint="Check database, tenant and user; durable-pg effects list shows the effects that this login sees.",
        )
    if len(found) > 1:
        lines = [f"{effect.effect_uid}  {effect.tool}  {effect.status}" for effect in found[:_CANDIDATES]]
        hint = "Give more characters: effects that began together have uids that begin alike."
        raise Ambiguous(f"several effects begin with {uid}", detail="\n".join(lines), hint=hint)
    return found[0]


def resolve_effect(
    connection: Connection,
    view: View,
    effect: EffectDetails,
    status: str,
    *,
    evidence: Mapping[str, str],
    result: str | None = None,
) -> tuple[EffectDetails, str]:
    """Say what became of an effect, as an app or an operator; return it and resolved or already_resolved.

    `result`: JSON text. Needs a view that writes. Raises WrongLogin, and DBAPIError for what the database refuses.
    """
    if view.role == "auditor":
        raise WrongLogin(
            f"{view.login} is an auditor's login, which writes nothing",
            hint="Use an operator's, or the application's with --tenant and --user.",
        )
    given = {"uid": effect.effect_uid, "status": status, "evidence": json.dumps(dict(evidence)), "result": result}
    outcome: str = connection.execute(_RESOLVE, given).scalar_one()
    return find_effect(connection, str(effect.effect_uid), tenant=effect.tenant_id), outcome


_RESOLVE = text(
    "select outcome from durable.resolve_effect("
    "effect_uid => cast(:uid as uuid), status => :status, evidence => cast(:evidence as json), "
    "result => cast(:result as json))"
)
_STATUS: ColumnElement[Any] = cast(func.durable.effect_status(effects.c.status, effects.c.lease_expires_at), Text)
_PLAIN = (
    *("tool", "intent", "user_id", "app_name", "run_uid", "step", "ordinal", "attempt", "failures", "idempotency_key"),
    *("first_begun_at", "lease_expires_at", "finished_at"),
)
_COLUMNS: Sequence[ColumnElement[Any]] = (
    *(effects.c.tenant_id, effects.c.effect_uid, _STATUS.label("status")),
    *(effects.c[name] for name in _PLAIN),
    *(sent(effects.c[name]).label(name) for name in ("args", "result", "error", "evidence")),
)


def _select(keys: Any) -> Select[Any]:
    found = keys.join(effects, among(keys, effects, "effect_uid"))
    return select(*_COLUMNS).select_from(found).order_by(effects.c.effect_uid.desc())


def _effect(row: Any) -> EffectDetails:
    given = dict(row)
    for name in ("first_begun_at", "lease_expires_at", "finished_at"):
        given[name] = in_utc(given[name])
    given.update({name: as_json(given[name]) for name in ("args", "result", "error", "evidence")})
    return EffectDetails(**given)
