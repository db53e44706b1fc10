"""What is compared at the end: the provider's log, the ledger and the log of the database, the workers' journal."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Json

from tests.crash.model import GOALS
from tests.crash.shop import lines
from tests.crash.stage import TENANTS
from tests.support.calls import call, call_all
from tests.support.harness import Connection, Database

Line = dict[str, Any]


@dataclass(frozen=True)
class Books:
    """Everything that is known of a performance."""

    orders: list[str]
    executions: list[Line]
    journal: list[Line]
    runs: list[DictRow]
    effects: list[DictRow]
    events: list[DictRow]
    checkpoints: list[DictRow]
    chains: list[DictRow]

    @classmethod
    def read(cls, database: Database, directory: Path, orders: list[str]) -> "Books":
        """Read them, each in its own order, when all workers have gone."""
        with database.superuser() as root, database.as_auditor() as auditor:
            return cls(
                orders,
                lines(directory / "executions"),
                lines(directory / "journal"),
                _all(root, "select * from durable.runs"),
                listed_effects(database),
                _all(root, "select * from durable.events order by tenant_id, session_uid, seq"),
                _all(root, "select * from durable.checkpoints order by tenant_id, run_uid, step"),
                _all(
                    auditor,
                    "select v.intact, v.events_checked, s.last_seq from durable.sessions as s,"
                    " lateral durable.verify_session(session_uid => s.session_uid) as v",
                ),
            )

    def executed(self) -> Counter[str]:
        """Count the executions of each intent."""
        return Counter(line["intent"] for line in self.executions)

    def intents(self) -> list[str]:
        """Name all that the orders ask for."""
        return [f"{goal}:{order}" for order in self.orders for goal in GOALS]

    def noted(self) -> Counter[str]:
        """Count what the workers have noted."""
        return Counter(line["what"] for line in self.journal)

    def unverified(self) -> dict[UUID, list[DictRow]]:
        """Return the effects that wait for a person, by run."""
        found: dict[UUID, list[DictRow]] = {}
        for effect in self.effects:
            if effect["status"] == "unverified":
                found.setdefault(effect["run_uid"], []).append(effect)
        return found


def listed_effects(database: Database, **which: Any) -> list[DictRow]:
    """List what operators see, of all tenants."""
    found: list[DictRow] = []
    for tenant in TENANTS:
        with database.as_operator(tenant) as operator:
            found += call_all(operator, "list_effects", **which)
    return found


def sweep(database: Database) -> None:
    """Do what cron does: mark as interrupted what the last killed worker has left as running."""
    with database.as_maintainer() as maintainer:
        assert call(maintainer, "reap_runs")["skipped"] == 0


def ask_a_person(database: Database, directory: Path) -> int:
    """Let people on call look into the provider's books and record what they see; return how many they recorded."""
    receipts = {line["key"]: line for line in lines(directory / "executions")}
    resolved = 0
    for tenant in TENANTS:
        with database.as_operator(tenant) as operator:
            for effect in call_all(operator, "list_effects", status="unverified"):
                receipt = receipts.get(effect["idempotency_key"])
                seen = f"no. {receipt['number']}" if receipt else "nothing"
                resolved += 1
                call(
                    operator,
                    "resolve_effect",
                    effect_uid=effect["effect_uid"],
                    status="succeeded" if receipt else "failed",
                    evidence={"channel": "the provider's books", "seen": seen, "who": "on-call"},
                    result=Json(receipt) if receipt else None,
                )
    return resolved


def _all(root: Connection, query: str) -> list[DictRow]:
    return root.execute(query.encode()).fetchall()
