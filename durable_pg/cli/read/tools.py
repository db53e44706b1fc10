"""The tools of an app: what is stored of them, and what a program declares."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, text
from sqlalchemy.engine import Connection

from durable_pg.cli.read.view import View, WrongLogin, in_utc
from durable_pg.tables import tools


@dataclass(frozen=True)
class StoredTool:
    """What is stored of a tool. `outcome`, after declare(): written, unchanged, or kept; else stored."""

    tenant_id: str
    app_name: str
    tool: str
    replay_class: str
    updated_at: datetime
    outcome: str = "stored"


def list_tools(
    connection: Connection, *, tenant: str | None = None, app: str | None = None, limit: int | None = None
) -> tuple[StoredTool, ...]:
    """Return what is stored of tools, in order of app and name. A tool that is not among them counts as an effect."""
    given = ((tools.c.tenant_id, tenant), (tools.c.app_name, app))
    query = (
        select(tools.c.tenant_id, tools.c.app_name, tools.c.tool, tools.c.replay_class, tools.c.updated_at)
        .where(*(column == value for column, value in given if value is not None))
        .order_by(tools.c.tenant_id, tools.c.app_name, tools.c.tool)
        .limit(limit)
    )
    return tuple(StoredTool(*row[:4], in_utc(row.updated_at)) for row in connection.execute(query))


def declare_tools(connection: Connection, view: View, app: str, declared: Mapping[str, str]) -> tuple[StoredTool, ...]:
    """Write what a program declares, as an operator; where what is stored is stricter, that is kept.

    Needs a view that writes. Raises WrongLogin, and DBAPIError for what the database refuses.
    """
    if view.role != "operator":
        raise WrongLogin(
            f"{view.login} is no operator: only an operator says what a tool is like",
            hint="Use the URL of a login in durable_operator, with --tenant.",
        )
    rows = connection.execute(_DECLARE, {"app": app, "tools": json.dumps(dict(declared))})
    tenant = view.tenant or ""
    return tuple(
        StoredTool(tenant, row.app_name, row.tool, row.replay_class, in_utc(row.updated_at), row.outcome)
        for row in rows
    )


_DECLARE = text(
    "select app_name, tool, replay_class, updated_at, outcome from durable.declare_tools("
    "app_name => :app, tools => cast(:tools as json))"
)
