"""The newest rows of a tenant or of all, by the primary key (tenant_id, uid) alone: uids are ordered by time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Subquery, Table, and_, func, select, true
from sqlalchemy.sql.selectable import FromClause

_PREFIX = re.compile("[0-9a-f]+")
SHORTEST = 8


def newest(
    table: Table,
    uid: str,
    conditions: Sequence[ColumnElement[bool]],
    *,
    tenant: str | None,
    limit: int | None,
    joined: FromClause | None = None,
) -> Subquery:
    """Select tenant_id and uid of the newest rows that fulfil the conditions, which may speak of `joined` too.

    Over all tenants each one's newest are taken first, so that no index over uids alone is needed.
    """
    column = table.c[uid]
    query = select(table.c.tenant_id, column).select_from(table if joined is None else joined).where(*conditions)
    if tenant is not None:
        return query.where(table.c.tenant_id == tenant).order_by(column.desc()).limit(limit).subquery("newest")
    tenants = _tenants_of(table)
    of_one = query.where(table.c.tenant_id == tenants.c.tenant_id).order_by(column.desc()).limit(limit)
    page = of_one.correlate(tenants).lateral("page")
    of_all = select(*page.c).select_from(tenants.join(page, true()))
    return of_all.order_by(page.c[uid].desc()).limit(limit).subquery("newest")


def among(keys: Subquery, table: Table, uid: str) -> ColumnElement[bool]:
    """Join a table with the keys that `newest` selects."""
    return and_(table.c.tenant_id == keys.c.tenant_id, table.c[uid] == keys.c[uid])


def _tenants_of(table: Table) -> FromClause:
    """Select the tenants of a table by jumping from one to the next in its primary key."""
    first = select(func.min(table.c.tenant_id).label("tenant_id")).cte(f"{table.name}_tenants", recursive=True)
    following = select(func.min(table.c.tenant_id)).where(table.c.tenant_id > first.c.tenant_id).scalar_subquery()
    walk = first.union_all(select(following).where(first.c.tenant_id.is_not(None)))
    return select(walk.c.tenant_id).where(walk.c.tenant_id.is_not(None)).subquery(f"{table.name}_of")


def as_range(prefix: str) -> tuple[UUID, UUID] | None:
    """Return the first and the last uid that begin with this text; None when it is no uid's beginning."""
    digits = prefix.strip().lower().replace("-", "")
    if not SHORTEST <= len(digits) <= 32 or not _PREFIX.fullmatch(digits):
        return None
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def within(column: ColumnElement[Any], bounds: tuple[UUID, UUID]) -> ColumnElement[bool]:
    """Ask for the uids from the first to the last."""
    first, last = bounds
    return column == first if first == last else and_(column >= first, column <= last)
