"""What the commands read, as frozen dataclasses.

Every function takes a SQLAlchemy Connection that acts as somebody already, or is an auditor's.
`open_view` prepares it:

    with engine.begin() as connection:
        open_view(connection, tenant="acme", user="user-7")
        for run in list_runs(connection, tenant="acme", limit=10):
            print(run.run_uid, run.status)

Nothing is written and no row is locked, but by resolve_effect and declare_tools. What the login may not see is as
absent as what never was.
"""

from durable_pg.cli.read.effects import EffectDetails, find_effect, list_effects, resolve_effect
from durable_pg.cli.read.events import LoggedEvent
from durable_pg.cli.read.json_text import JsonText, to_json
from durable_pg.cli.read.messages import Piece, read_pieces
from durable_pg.cli.read.runs import RunDetails, RunSummary, Timeline, find_run, list_runs, read_timeline
from durable_pg.cli.read.sessions import (
    SessionDetails,
    SessionOverview,
    SessionSummary,
    VerifiedSession,
    find_session,
    list_sessions,
    page_of_sessions,
    read_session,
    verify_session,
)
from durable_pg.cli.read.tools import StoredTool, declare_tools, list_tools
from durable_pg.cli.read.view import Ambiguous, NotFound, View, WrongLogin, now, open_view

__all__ = [
    "Ambiguous",
    "EffectDetails",
    "JsonText",
    "LoggedEvent",
    "NotFound",
    "Piece",
    "RunDetails",
    "RunSummary",
    "SessionDetails",
    "SessionOverview",
    "SessionSummary",
    "StoredTool",
    "Timeline",
    "VerifiedSession",
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
