"""Frozen SQL files of migrations/versions: chunks with a marker line each, executed as they stand.

--! sql/calls/settle_run.sql                        a verbatim copy of that file
--! by hand: sql/tables/runs.sql sha256:<digest>    written by a developer; the digest is of the file it leads to
--! dropped: sql/calls/old_call.sql                 written by a developer; the file is gone
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from alembic.runtime.migration import MigrationContext
from sqlalchemy.engine import Connection

from durable_pg._wire.diagnostics import diagnostic, primary_message, sqlstate
from durable_pg.migrate.database import execute_script
from durable_pg.migrate.errors import (
    MigrationError,
    RowsExist,
    WaitTimedOut,
)

_MARKER = re.compile(
    r"^--! (?:(?P<kind>by hand|dropped): )?(?P<path>\S+)(?: sha256:(?P<digest>[0-9a-f]{64}))?$", re.MULTILINE
)


@dataclass(frozen=True)
class Chunk:
    """One marker and the text below it."""

    kind: str  # "copy", "by hand" or "dropped"
    path: str
    digest: str
    text: str


def digest(text: str) -> str:
    """What a marker line and CHAIN know a text by."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_text(path: Path) -> str:
    """The text as it stands, whatever this system's line ends and encoding are."""
    return path.read_bytes().decode("utf-8")


def chunks(script: str, name: str = "script") -> list[Chunk]:
    """The chunks of a frozen file; text before the first marker may only be comments."""
    found = list(_MARKER.finditer(script))
    ends = [match.start() for match in found[1:]] + [len(script)]
    head = script[: found[0].start()] if found else script
    if any(line.strip() and not line.startswith("--") for line in head.splitlines()):
        raise MigrationError(f"{name}: statements before the first --! marker line")
    result = []
    for match, end in zip(found, ends, strict=True):
        text = script[match.end() + 1 : end]
        kind = match["kind"] or "copy"
        result.append(Chunk(kind, match["path"], match["digest"] or (digest(text) if kind == "copy" else ""), text))
    return result


def run(context: MigrationContext, directory: Path, name: str) -> None:
    """What a revision's upgrade() and downgrade() call: executes a frozen file, or adds it to the offline script."""
    script = read_text(directory / name)
    if context.as_sql:
        context.impl.static_output(script.rstrip())
        return
    connection = cast("Connection", context.connection)
    for chunk in chunks(script, name):
        _run_chunk(connection, chunk, name)


def _run_chunk(connection: Connection, chunk: Chunk, name: str) -> None:
    if not any(line.strip() and not line.startswith("--") for line in chunk.text.splitlines()):
        return
    try:
        execute_script(connection, chunk.text)
    except Exception as error:
        state = sqlstate(error)
        if state is None:
            raise
        position = diagnostic(error, "statement_position")
        line = f", line {chunk.text.count(chr(10), 0, int(position)) + 1}" if position.isdigit() else ""
        kind: type[MigrationError] = {"55P03": WaitTimedOut, "55W06": RowsExist}.get(state, MigrationError)
        raise kind(
            f"{name}, {chunk.path}{line}: {primary_message(error)} ({state})",
            detail=diagnostic(error, "message_detail"),
            hint=diagnostic(error, "message_hint")
            or (
                "Something holds a lock on it; run again later, or allow more (--lock-timeout)."
                if state == "55P03"
                else ""
            ),
        ) from getattr(error, "orig", error)  # SQLAlchemy's own message would repeat the whole file
