"""What run() was asked for, and what start_run's answer means for it."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from durable_pg._client import parameters as given
from durable_pg.errors import RunAwaiting, RunBusy, RunSettled
from durable_pg.types import RunOutcome, Session
from durable_pg.upgrades import CheckpointUpgrades


@dataclass(frozen=True)
class Asked:
    """The arguments of run(). `patience`: seconds that a last word may take when the caller is being cancelled."""

    session: Session | UUID | str
    invocation_id: str
    message: Any
    input: Any
    trigger: str
    worker: str
    lease: timedelta
    max_attempts: int | None
    upgrades: CheckpointUpgrades
    patience: float

    def __post_init__(self) -> None:
        # A renewal is timed by it, before the database has seen it.
        given.span("lease", self.lease)


def this_worker() -> str:
    """Name this process, for people who read who holds a lease."""
    return f"{socket.gethostname()}:{os.getpid()}"


def refuse_unless_held(begun: RunOutcome, asked: Asked) -> None:
    """Raise RunSettled, RunBusy or RunAwaiting unless the run is this worker's now."""
    if begun.outcome in {"started", "resumed"}:
        return
    facts: dict[str, Any] = {
        "call": "start_run",
        "names": {"run_uid": str(begun.run_uid), "invocation_id": asked.invocation_id},
        "run": begun,
    }
    if begun.outcome == "busy":
        raise RunBusy(
            "the run is executed by somebody else",
            detail=f"its lease lasts until {begun.lease_expires_at}, unless it is renewed",
            hint="Leave it alone, and look again after that.",
            **facts,
        )
    if begun.outcome == "awaiting":
        raise RunAwaiting("the run waits for a person's decision", hint="Run it again after that.", **facts)
    raise RunSettled(
        f"the run has {begun.status}",
        hint="Its result and error are in .run; a new turn gets a new invocation_id.",
        **facts,
    )
