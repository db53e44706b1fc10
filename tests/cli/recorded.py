"""Recorded runs to look at, and terminals of a given width to look at them in."""

import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from dataclasses import dataclass
from fcntl import ioctl
from typing import Any
from uuid import UUID

from tests.support.calls import append, call, open_session, say, settle, start, tool_response, use_tool
from tests.support.cli import environment
from tests.support.harness import Database

# What a user or a model may send to whoever looks: controls, a terminal's title, bidi overrides, markup, a forged call.
NASTY = (
    "\x1b[31mred\x1b[0m \x1b]0;owned\x07 \x9b2J \u202eesrever\u202c\r"
    "[bold]markup[/bold] [link=x]y[/link] :smile:\n→ refund {}"
)
WIDE = "日本語のとても長い名前" * 6 + "👨‍👩‍👧❤️" + "x" * 40
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
SENT = {
    "parts": [
        {"text": NASTY},
        {"function_call": {"name": "refund", "args": {"order": 7, "big": 12345678901234567890123, "amount": 12.5}}},
    ],
    "nul": "a\x00b",
    "lone": "\ud800",
}


@dataclass(frozen=True)
class Recorded:
    """Uids of what `record` made."""

    session: UUID
    failed: UUID
    running: UUID
    quiet: UUID
    neighbour: UUID
    stranger: UUID
    long_session: UUID
    long: UUID
    closed: UUID


def record(db: Database) -> Recorded:
    """Record a failed and a running run and one of which nothing is known, others' runs, and one of 300 events."""
    with db.as_app() as app:
        session = open_session(app, "s-1", state={"step": 1, "user:tier": "gold"})
        say(app, session, "refund order 7")
    with db.as_app() as app:
        failed = start(app, session, input={"order": 7, "nul": "a\x00b"})
    with db.as_app() as app:
        append(
            app, session, "support_agent", json.dumps(SENT), invocation_id="inv-1", attempt=1, metadata={"trace": "t-1"}
        )
        append(app, session, "tools", tool_response("refund"), invocation_id="inv-1", attempt=1)
        settle(app, failed, status="failed", error={"why": "the provider timed out"})
    with db.as_app() as app:
        say(app, session, "and order 8", "inv-2")
        running = start(app, session, "inv-2", worker="w-1")
        use_tool(app, session, "mail", "inv-2", attempt=1)
        quiet = start(app, session, "inv-3", trigger="schedule")
        settle(app, quiet, status="cancelled")
        closed = open_session(app, "old")
        say(app, closed, "bye")
        call(app, "close_session", session_uid=closed, reason="done")
    with db.as_app(user="U2") as app:
        neighbour = _one_run(app)
    with db.as_app("T2", "U1") as app:
        stranger = _one_run(app)
    with db.as_app(user=WIDE) as app:
        long_session = open_session(app, WIDE, app_name="an/app/" + WIDE)
        say(app, long_session, WIDE)
        long = start(app, long_session)
        for number in range(299):
            text = WIDE if number % 50 == 0 else f"step {number}"
            append(app, long_session, WIDE, {"parts": [{"text": text}]}, invocation_id="inv-1", attempt=1)
        settle(app, long, tools_executed=[WIDE])
    return Recorded(session, failed, running, quiet, neighbour, stranger, long_session, long, closed)


def _one_run(app: Any) -> UUID:
    session = open_session(app, "s-1")
    say(app, session)
    run = start(app, session)
    append(app, session, content={"parts": [{"text": "done"}]}, invocation_id="inv-1", attempt=1)
    settle(app, run, result={"text": "done"})
    return run


def age(db: Database, run: UUID, hours: int) -> None:
    """Let a run, its lease and what is recorded of it be older than they are."""
    with db.superuser() as root:
        for table in ("runs", "events"):
            root.execute(f"alter table durable.{table} disable trigger user".encode())
        root.execute(
            """
            update durable.events as e set recorded_at = e.recorded_at - make_interval(hours => %s)
            from durable.runs as r
            where r.run_uid = %s and e.session_uid = r.session_uid and e.invocation_id = r.invocation_id
            """,
            (hours, run),
        )
        root.execute(
            """
            update durable.runs
            set started_at = started_at - make_interval(hours => %(hours)s),
                lease_expires_at = lease_expires_at - make_interval(hours => %(hours)s)
            where run_uid = %(run)s
            """,
            {"hours": hours, "run": run},
        )


def _sized_by_itself() -> dict[str, str]:
    return {name: text for name, text in environment().items() if name not in {"COLUMNS", "LINES"}}


def durable_pg_in_terminal(*arguments: str, columns: int) -> list[str]:
    """Run the command line in a terminal so wide, and return the lines it shows, colours aside."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "durable_pg", *arguments],
        env={**_sized_by_itself(), "TERM": "xterm-256color", "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        cwd=tempfile.gettempdir(),
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other side has closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(ours)
    assert process.wait(timeout=60) == 0, shown.decode()
    return COLOUR.sub("", shown.decode()).replace("\r\n", "\n").removesuffix("\n").split("\n")
