"""Calls of the ledger, of leases and of checkpoints by name, and waiting for the end of a lease."""

import json
import time
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from tests.support.calls import call, call_all
from tests.support.harness import Connection, Database, value

ARGS = {"order": 7, "cents": 500}
EVIDENCE = {"channel": "provider's dashboard", "seen": "refund re_7 of 5.00, succeeded"}
SHORT = "200 milliseconds"


def begin(connection: Connection, run: UUID, attempt: int | None = 1, **more: Any) -> DictRow:
    """Begin a refund, in step 0 and without an intent unless more is said."""
    return call(
        connection, "begin_effect", **{"run_uid": run, "attempt": attempt, "tool": "refund", "args": ARGS, **more}
    )


def finish(connection: Connection, effect: UUID, status: str | None = "succeeded", **more: Any) -> DictRow:
    """Finish an effect as the first attempt unless more is said."""
    return call(connection, "finish_effect", **{"effect_uid": effect, "attempt": 1, "status": status, **more})


def resolve(connection: Connection, effect: UUID, status: str | None = "succeeded", **more: Any) -> DictRow:
    """Resolve an effect on the word of somebody who looked."""
    return call(connection, "resolve_effect", **{"effect_uid": effect, "status": status, "evidence": EVIDENCE, **more})


def refund(connection: Connection, run: UUID, status: str = "succeeded", attempt: int = 1, **more: Any) -> UUID:
    """Begin a refund and finish it at once; return its effect_uid."""
    begun = begin(connection, run, attempt, **more)
    assert begun["outcome"] == "execute"
    found = begun["effect_uid"]
    assert isinstance(found, UUID)
    finish(connection, found, status, attempt=attempt)
    return found


def effects(connection: Connection, **more: Any) -> list[DictRow]:
    """List the effects that the caller sees."""
    return call_all(connection, "list_effects", **more)


def interrupt(connection: Connection, run: UUID, attempt: int | None = 1, **more: Any) -> DictRow:
    """Give a run back."""
    return call(connection, "interrupt_run", run_uid=run, attempt=attempt, **more)


def ask_for(connection: Connection, session: UUID, invocation: str = "inv-1", **more: Any) -> DictRow:
    """Start or resume the run of an invocation, or learn where it stands."""
    return call(connection, "start_run", session_uid=session, invocation_id=invocation, **more)


def take_over(connection: Connection, session: UUID, run: UUID, attempt: int = 1) -> int:
    """Let the attempt give the run back and the next one take it; return the next."""
    assert interrupt(connection, run, attempt)["outcome"] == "interrupted"
    taken = ask_for(connection, session)
    assert (taken["run_uid"], taken["outcome"]) == (run, "resumed")
    assert isinstance(taken["attempt"], int)
    return taken["attempt"]


def save(connection: Connection, run: UUID, step: int | None = 1, attempt: int | None = 1, **more: Any) -> DictRow:
    """Save a checkpoint."""
    state = {"run_uid": run, "attempt": attempt, "step": step, "state": {"step": step}}
    return call(connection, "save_checkpoint", **{**state, **more})


def record(connection: Connection, run: UUID, step: int | None = 1, attempt: int | None = 1, **more: Any) -> DictRow:
    """Record a step; lists are JSON, a UUID in them its text."""
    given = {name: json.dumps(items, default=str) if isinstance(items, list) else items for name, items in more.items()}
    return call(connection, "record_step", **{"run_uid": run, "attempt": attempt, "step": step, **given})


def wait_until_over(db: Database, lease_expires_at: datetime) -> None:
    """Return as soon as the database's clock is past the end of a lease."""
    with db.server.connect(db.name) as root:
        while not value(root, "select clock_timestamp() > %s", lease_expires_at):
            time.sleep(0.01)
