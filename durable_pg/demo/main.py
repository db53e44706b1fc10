"""The demo: an embedded Postgres, a migration by its own login, real runs recorded as the app, then attacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from durable_pg._embedded.database import temporary_database
from durable_pg.demo.attacks import ATTACKS, Tried, attempt, prepare_target
from durable_pg.demo.recording import Recorded, bundled_runs, submit_thrice
from durable_pg.demo.worker import Killed, kill_one

TENANT = "airline-one"


@dataclass
class DemoReport:
    """Everything the demo found."""

    postgres: str = ""
    revision: str | None = None
    recorded: list[Recorded] = field(default_factory=list)
    tried: list[Tried] = field(default_factory=list)
    unchanged: bool = False
    killed: Killed = field(default_factory=Killed)

    @property
    def passed(self) -> bool:
        """Whether every run was recorded once, every attack refused, and a killed worker's refund done once."""
        recorded = all(run.intact for run in self.recorded)
        return self.unchanged and recorded and all(tried.held for tried in self.tried) and self.killed.passed

    def facts(self) -> dict[str, Any]:
        """The report for a machine."""
        attacks = [
            {**tried.attack._asdict(), "refused_with": tried.sqlstate, "message": tried.message, "held": tried.held}
            for tried in self.tried
        ]
        return {
            "postgres": self.postgres,
            "revision": self.revision,
            "recorded": [asdict(run) for run in self.recorded],
            "attacks": attacks,
            "rows_unchanged": self.unchanged,
            "killed_worker": {"told": [told._asdict() for told in self.killed.told], "refunds": self.killed.refunds},
            "passed": self.passed,
        }


def run_demo(tell: Callable[[str], None]) -> DemoReport:
    """Run it all on an embedded server; `tell` hears of each step before it begins. Raises NoEmbeddedServer."""
    with temporary_database(tell) as database:
        runs = bundled_runs()
        report = DemoReport(database.postgres, database.revision)
        tell(f"Recording {len(runs)} real agent runs as the login app, each submitted three times")
        report.recorded = [submit_thrice(database.url("app"), TENANT, run) for run in runs]
        target = prepare_target(database, TENANT, runs[0].user_id)
        before = _snapshot(database.url("auditor"))
        tell(f"Attacking the record in {len(ATTACKS)} ways")
        report.tried = [attempt(database, attack, target) for attack in ATTACKS]
        report.unchanged = _snapshot(database.url("auditor")) == before
        tell("Killing a worker between the provider's act and its record")
        with TemporaryDirectory(prefix="durable-pg-provider-") as folder:
            report.killed = kill_one(database.url("app"), TENANT, runs[0].user_id, Path(folder))
    return report


def _snapshot(auditor_url: str) -> list[Any]:
    """Every row, as the auditor reads it."""
    with psycopg.connect(auditor_url) as auditor:
        return [
            auditor.execute(query).fetchall()
            for query in (
                "select session_uid, last_seq, head_hash, revision, state from durable.sessions order by 1",
                "select * from durable.events order by session_uid, seq",
                "select * from durable.runs order by run_uid",
                "select * from durable.effects order by effect_uid",
                "select * from durable.checkpoints order by run_uid, step",
            )
        ]
