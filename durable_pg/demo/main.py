"""The demo: an embedded Postgres, a migration by its own login, real runs recorded as the app, then attacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from durable_pg import migrate
from durable_pg.demo.attacks import ATTACKS, Attack
from durable_pg.demo.recording import AgentRun, bundled_runs, one_row, record
from durable_pg.server import start_temporary

LOGINS = {"app": "app", "operator": "operator", "maintainer": "maintainer", "auditor": "auditor"}
TENANT = "airline-one"
FOUND = """
select count(*), count(*) filter (where e.opening), min(r.tools_executed), bool_and(v.intact)
from durable.sessions as s
join durable.runs as r using (session_uid)
join durable.events as e using (session_uid)
cross join durable.verify_session(session_uid => s.session_uid) as v
where s.session_id = %(session)s
"""
START_ANOTHER = "select run_uid from durable.start_run(session_uid => %(session)s, invocation_id => 'turn-9')"
CALL_A_TOOL = """
select durable.append_event(session_uid => %(session)s, author => 'agent', invocation_id => 'turn-9',
    content => '{"role": "assistant", "tool_calls": [{"function": {"name": "cancel_reservation"}}]}')
"""


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

    @property
    def passed(self) -> bool:
        """Whether every run was recorded once and every attack refused."""
        return self.unchanged and all(run.intact for run in self.recorded) and all(tried.held for tried in self.tried)

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
            "passed": self.passed,
        }


class Demo:
    """A database of its own with a login for each role."""

    def __init__(self, superuser_url: str) -> None:
        self._superuser_url = superuser_url
        self._database = "agents"

    def prepare(self) -> None:
        """What a DBA does once: a database for the migration login, and a login for each kind of work."""
        with psycopg.connect(self._superuser_url, autocommit=True) as dba:
            dba.execute("create role migrator login createrole")
            for login in LOGINS.values():
                dba.execute(sql.SQL("create role {} login").format(sql.Identifier(login)))
            dba.execute(sql.SQL("create database {} owner migrator").format(sql.Identifier(self._database)))

    def url(self, login: str) -> str:
        """Where a login connects."""
        return psycopg.conninfo.make_conninfo(self._superuser_url, user=login, dbname=self._database)

    @contextmanager
    def acting_as(self, role: str) -> Iterator[psycopg.Connection[Any]]:
        """Connect as a front role's login, or as the migration login that has become a role behind."""
        behind = role.startswith("durable_")
        with psycopg.connect(self.url("migrator" if behind else role), autocommit=not behind) as connection:
            if behind:
                connection.execute(sql.SQL("set local durable.tenant_id = {}").format(sql.Literal(TENANT)))
                connection.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
            yield connection

    def submit(self, run: AgentRun) -> Recorded:
        """Record a run three times over, as a crashed and retried worker would; say what is there in the end."""
        outcomes: Counter[str] = Counter()
        with self.acting_as("app") as app:
            for _ in range(3):
                outcomes += record(app, run, tenant=TENANT)
            app.autocommit = False
            app.execute("select durable.act_as(%s, %s)", (TENANT, run.user_id))
            events, turns, tools, intact = one_row(app, FOUND, {"session": run.session_id})
        complete = events == len(run.events) and turns == sum(event.is_user_turn for event in run.events)
        return Recorded(run.format, events, turns, tools, outcomes["duplicate"], intact and complete)

    def target(self, run: AgentRun) -> dict[str, sql.Literal]:
        """Names for the attacks: a settled run, its session, and a run that is executing with a tool call recorded."""
        with psycopg.connect(self.url("app")) as app:
            app.execute("select durable.act_as(%s, %s)", (TENANT, run.user_id))
            session_uid, run_uid = one_row(app, "select session_uid, run_uid from durable.runs", {})
            (open_run_uid,) = one_row(app, START_ANOTHER, {"session": session_uid})
            app.execute(CALL_A_TOOL, {"session": session_uid})
        names = {
            "tenant": TENANT,
            "user": run.user_id,
            "session_uid": session_uid,
            "run_uid": run_uid,
            "open_run_uid": open_run_uid,
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
        with psycopg.connect(self.url("auditor")) as auditor:
            return [
                auditor.execute(query).fetchall()
                for query in (
                    "select session_uid, last_seq, head_hash, revision, state from durable.sessions order by 1",
                    "select * from durable.events order by session_uid, seq",
                    "select * from durable.runs order by run_uid",
                )
            ]


def run_demo(tell: Callable[[str], None]) -> Report:
    """Run it all on an embedded server; `tell` hears of each step before it begins. Raises NoEmbeddedServer."""
    report = Report()
    tell("Starting an embedded Postgres")
    superuser_url, stop = start_temporary()
    try:
        demo = Demo(superuser_url)
        demo.prepare()
        tell("Migrating as the login migrator, which is no superuser")
        report.revision = migrate.upgrade(demo.url("migrator"), logins=LOGINS).after
        with psycopg.connect(demo.url("auditor")) as auditor:
            report.postgres = auditor.info.parameter_status("server_version") or ""
        runs = bundled_runs()
        tell(f"Recording {len(runs)} real agent runs as the login app, each submitted three times")
        report.recorded = [demo.submit(run) for run in runs]
        target = demo.target(runs[0])
        before = demo.snapshot()
        tell(f"Attacking the record in {len(ATTACKS)} ways")
        report.tried = [demo.attack(attack, target) for attack in ATTACKS]
        report.unchanged = demo.snapshot() == before
    finally:
        stop()
    return report
