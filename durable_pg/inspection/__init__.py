"""Reading the record, for people and their tools: what durable-pg runs and sessions print, as frozen dataclasses.

Every function takes a SQLAlchemy Connection that acts as somebody already, or is an auditor's.
`open_view` prepares it:

    with engine.begin() as connection:
        open_view(connection, tenant="acme", user="user-7")
        for run in list_runs(connection, tenant="acme", limit=10):
            print(run.run_uid, run.status)

Nothing is written and no row is locked, but by resolve_effect and declare_tools. What the login may not see is as
absent as what never was.
"""

from durable_pg.inspection._effects import (
    Effect,
    Tool,
    declare_tools,
    find_effect,
    list_effects,
    list_tools,
    resolve_effect,
)
from durable_pg.inspection._events import Event
from durable_pg.inspection._json import Json, to_json
from durable_pg.inspection._messages import Piece, read_pieces
from durable_pg.inspection._runs import Run, RunRow, Timeline, Verdict, find_run, list_runs, read_timeline
from durable_pg.inspection._sessions import (
    Session,
    SessionRow,
    SessionView,
    Verification,
    find_session,
    list_sessions,
    page_of_sessions,
    read_session,
    verify_session,
)
from durable_pg.inspection._view import Ambiguous, NotFound, View, WrongLogin, now, open_view

__all__ = [
    "Ambiguous",
    "Effect",
    "Event",
    "Json",
    "NotFound",
    "Piece",
    "Run",
    "RunRow",
    "Session",
    "SessionRow",
    "SessionView",
    "Timeline",
    "Tool",
    "Verdict",
    "Verification",
    "View",
    "WrongLogin",
    "declare_tools",
    "find_effect",
    "find_run",
    "find_session",
    "list_effects",
    "list_runs",
    "list_sessions",
    "list_tools",
    "now",
    "open_view",
    "page_of_sessions",
    "read_pieces",
    "read_session",
    "read_timeline",
    "resolve_effect",
    "to_json",
    "verify_session",
]
