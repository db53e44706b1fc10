"""The demo: an embedded Postgres, a migration by its own login, real runs recorded as the app, then attacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from psycopg import sql

from durable_pg import Durable
from durable_pg.demo.attacks import ATTACKS, Attack
from durable_pg.demo.database import DemoDatabase, demo_database
from durable_pg.demo.killed import Killed, kill_one
from durable_pg.demo.recording import AgentRun, bundled_runs, record

TENANT = "airline-one"
START_ANOTHER = "select run_uid from durable.start_run(session_uid => %(session)s, invocation_id => 'turn-9')"
CALL_A_TOOL = """
select durable.append_event(session_uid => %(session)s, author => 'agent', invocation_id => 'turn-9', attempt => 1,
    content => '{"role": "assistant", "tool_calls": [{"function": {"name": "cancel_reservation"}}]}')
"""
BEGIN = """
select effect_uid from durable.begin_effect(run_uid => %(run)s, attempt => 1, tool => 'refund',
    args => '{"amount": 20}', intent => 'refund:order-7')
"""
FINISH = "select durable.finish_effect(effect_uid => %(effect)s, attempt => 1, status => 'succeeded', result => '1')"


@dataclass
class Recorded:
    """What one run left behind after it was submitted three times."""

    format: str
    events: int
    user_turns: int
    tools_executed: list[str]
    duplicates: int
    intact: bool


@dataclass
class Tried:
    """An attack, and what came of it."""

    attack: Attack
    sqlstate: str | None
    message: str

    @property
    def held(self) -> bool:
        """Whether the rule refused it, with its own SQLSTATE."""
        return self.sqlstate == self.attack.sqlstate


@dataclass
class Report:
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


def _row(connection: psycopg.Connection[Any], query: str, parameters: dict[str, Any]) -> Any:
    row = connection.execute(query.encode(), parameters).fetchone()
    if row is None:
        raise LookupError(f"no row: {query}")
    return row


class Demo:
    """What is done to the demo's database."""

    def __init__(self, database: DemoDatabase) -> None:
        self._database = database

    @contextmanager
    def acting_as(self, role: str) -> Iterator[psycopg.Connection[Any]]:
        """Connect as a front role's login, or as the migration login that has become a role behind."""
        behind = role.startswith("durable_")
        with psycopg.connect(self._database.url("migrator" if behind else role), autocommit=not behind) as connection:
            if behind:
                connection.execute(sql.SQL("set local durable.tenant_id = {}").format(sql.Literal(TENANT)))
                connection.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
            yield connection

    def submit(self, run: AgentRun) -> Recorded:
        """Record a run three times over, as a crashed and retried worker would; say what is there in the end."""
        outcomes: Counter[str] = Counter()
        with Durable.from_url(self._database.url("app")) as durable:
            me = durable.act_as(TENANT, run.user_id)
            for _ in range(3):
                outcomes += record(me, run)
            session = me.open_session("airline", run.session_id)
            events = me.read_events(session)
            (settled,) = me.list_runs(session)
            intact = me.verify_session(session).intact
        turns = sum(event.opening for event in events)
        complete = len(events) == len(run.events) and turns == sum(event.is_user_turn for event in run.events)
        tools = settled.tools_executed or []
        return Recorded(run.format, len(events), turns, tools, outcomes["duplicate"], intact and complete)

    def target(self, run: AgentRun) -> dict[str, sql.Literal]:
        """Names for the attacks: a settled run, its session, a run that executes, and an effect it has done."""
        with psycopg.connect(self._database.url("app")) as app:
            app.execute("select durable.act_as(%s, %s)", (TENANT, run.user_id))
            session_uid, run_uid = _row(app, "select session_uid, run_uid from durable.runs", {})
            (open_run_uid,) = _row(app, START_ANOTHER, {"session": session_uid})
            app.execute(CALL_A_TOOL, {"session": session_uid})
            (effect_uid,) = _row(app, BEGIN, {"run": open_run_uid})
            app.execute(FINISH, {"effect": effect_uid})
        names = {
            "tenant": TENANT,
            "user": run.user_id,
            "session_uid": session_uid,
            "run_uid": run_uid,
            "open_run_uid": open_run_uid,
            "effect_uid": effect_uid,
        }
        return {name: sql.Literal(value) for name, value in names.items()}

    def attack(self, attack: Attack, target: dict[str, sql.Literal]) -> Tried:
        """Try one attack in a transaction of its own."""
        try:
            with self.acting_as(attack.role) as connection:
                if attack.role == "durable_engine":
                    connection.execute(sql.SQL("set local durable.user_id = {}").format(target["user"]))
                connection.execute(sql.SQL(attack.sql).format(**target))
        except psycopg.Error as error:
            return Tried(attack, error.sqlstate, error.diag.message_primary or str(error))
        return Tried(attack, None, "nothing was refused")

    def snapshot(self) -> list[Any]:
        """Every row, as the auditor reads it."""
        with psycopg.connect(self._database.url("auditor")) as auditor:
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


def run_demo(tell: Callable[[str], None]) -> Report:
    """Run it all on an embedded server; `tell` hears of each step before it begins. Raises NoEmbeddedServer."""
    with demo_database(tell) as database:
        demo, runs = Demo(database), bundled_runs()
        report = Report(database.postgres, database.revision)
        tell(f"Recording {len(runs)} real agent runs as the login app, each submitted three times")
        report.recorded = [demo.submit(run) for run in runs]
        target = demo.target(runs[0])
        before = demo.snapshot()
        tell(f"Attacking the record in {len(ATTACKS)} ways")
        report.tried = [demo.attack(attack, target) for attack in ATTACKS]
        report.unchanged = demo.snapshot() == before
        tell("Killing a worker between the provider's act and its record")
        with TemporaryDirectory(prefix="durable-pg-provider-") as folder:
            report.killed = kill_one(database.url("app"), TENANT, runs[0].user_id, Path(folder))
    return report
