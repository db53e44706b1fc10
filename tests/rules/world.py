"""A small world, made through the SQL interface alone: the same names for three people, two of them in one tenant.

Each has a session `s-1` with six events, a settled run `inv-1` and a running one `inv-2`, and a closed session `s-2`.
Each run has called `refund` as an effect that succeeded and saved a checkpoint; the running one has three more: one
that is being called, `mail-7` (an intent) of which nobody knows, and `mail-6` that the user has resolved as succeeded.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import sql
from psycopg.rows import DictRow

from tests.rules.rows import audit_row, insert, tool_row
from tests.support.calls import call
from tests.support.harness import Connection, Database

# Longer than any run of the suite: what is held stays held.
LONG = "1 day"
PEOPLE = (("T1", "U1"), ("T1", "U2"), ("T2", "U1"))


@dataclass(frozen=True)
class Home:
    """What one person has: uids of sessions, of runs, and of effects (`recorded` is the settled run's)."""

    tenant: str
    user: str
    session: UUID
    closed: UUID
    settled: UUID
    running: UUID
    recorded: UUID
    done: UUID
    begun: UUID
    unverified: UUID
    resolved: UUID


@dataclass(frozen=True)
class World:
    """Whose rows are mine, the neighbour's (same tenant) and a stranger's (same user id, another tenant)."""

    mine: Home
    neighbour: Home
    stranger: Home

    @classmethod
    def of(cls, db: Database) -> "World":
        """Find the world of this database, or make it."""
        with db.superuser() as root:
            homes = _find(root)
        if not homes:
            _make(db)
            with db.superuser() as root:
                homes = _find(root)
        return cls(*(homes[person] for person in PEOPLE))


def _find(root: Connection) -> dict[tuple[str, str], Home]:
    found = root.execute(
        """
        select s.tenant_id as tenant, s.user_id as user, s.session_uid as session, c.session_uid as closed,
            done.run_uid as settled, running.run_uid as running,
            recorded.effect_uid as recorded, finished.effect_uid as done, begun.effect_uid as begun,
            unverified.effect_uid as unverified, resolved.effect_uid as resolved
        from durable.sessions as s
        join durable.sessions as c using (tenant_id, user_id)
        join durable.runs as done on done.tenant_id = s.tenant_id and done.session_uid = s.session_uid
        join durable.runs as running on running.tenant_id = s.tenant_id and running.session_uid = s.session_uid
        join durable.effects as recorded on recorded.run_uid = done.run_uid
        join durable.effects as finished on finished.run_uid = running.run_uid and finished.step = 1
        join durable.effects as begun on begun.run_uid = running.run_uid and begun.step = 2 and begun.scope = 'run'
        join durable.effects as unverified on unverified.run_uid = running.run_uid and unverified.intent = 'mail-7'
        join durable.effects as resolved on resolved.run_uid = running.run_uid and resolved.intent = 'mail-6'
        where s.session_id = 's-1' and c.session_id = 's-2'
            and done.invocation_id = 'inv-1' and running.invocation_id = 'inv-2'
        """
    )
    return {(row["tenant"], row["user"]): Home(**row) for row in found}


def _make(db: Database) -> None:
    with db.connect("app", autocommit=True) as app:
        for tenant, user in PEOPLE:
            _furnish(Caller(app, tenant, user))
    for tenant in ("T1", "T2"):
        with db.as_steward(tenant) as steward:
            insert(steward, "audit_log", audit_row(tenant))
            insert(steward, "tools", tool_row(tenant, app_name="support", tool="search", replay_class="read_only"))
    with db.as_janitor() as janitor:
        insert(janitor, "audit_log", audit_row("T2", acted_by=None))


@dataclass(frozen=True)
class Caller:
    """Calls functions as one person on an autocommit connection: one statement each, identity included."""

    app: Connection
    tenant: str
    user: str

    def __call__(self, function: str, **arguments: Any) -> DictRow:
        return call(self.app, function, me=(self.tenant, self.user), **arguments)


def _furnish(caller: Caller) -> None:
    session = caller(
        "open_session", app_name="support", session_id="s-1", state='{"a": 1, "app:theme": "dark", "user:name": "Ada"}'
    )["session_uid"]
    for invocation in ("inv-1", "inv-2"):
        start = {"input": '{"text": "refund order 7"}', "lease": LONG}
        run = caller("start_run", session_uid=session, invocation_id=invocation, **start)["run_uid"]
        say = {"session_uid": session, "invocation_id": invocation}
        called = '{"parts": [{"function_call": {"name": "refund"}}]}'
        caller("append_event", author="user", content='{"parts": [{"text": "refund order 7"}]}', **say)
        caller("append_event", author="agent", content=called, attempt=1, **say)
        _act(caller, run, finish="succeeded", result='{"id": "re_7"}', step=1, args='{"order": 7}')
        caller("save_checkpoint", run_uid=run, attempt=1, step=1, state='{"todo": ["answer"]}')
        if invocation == "inv-1":
            told = {"error": '{"code": 429}', "result": '{"n": 1}'}
            caller("settle_run", run_uid=run, attempt=1, status="failed", **told)
        else:
            _act(caller, run, step=2, args='{"order": 8}')
            _act(
                caller,
                run,
                finish="unverified",
                error='{"timeout": 30}',
                step=2,
                intent="mail-7",
                provider_dedupes_for="1 hour",
            )
            asked = _act(caller, run, finish="unverified", step=2, intent="mail-6")
            seen = '{"channel": "outbox", "seen": "it was sent"}'
            caller("resolve_effect", effect_uid=asked, status="succeeded", evidence=seen, result='{"id": 6}')
    caller("append_event", session_uid=session, author="user", content='{"text": "typing"}', event_id="loose")
    caller("append_event", session_uid=session, author="system", content='{"text": "note"}', metadata='{"trace": 1}')
    closed = caller("open_session", app_name="support", session_id="s-2")["session_uid"]
    caller("close_session", session_uid=closed, reason="done")


def _act(caller: Caller, run: UUID, *, finish: str = "", result: Any = None, error: Any = None, **key: Any) -> UUID:
    """Call `refund` as an effect of the run's first attempt, and finish it unless it is to stay begun."""
    effect: UUID = caller("begin_effect", run_uid=run, attempt=1, tool="refund", **key)["effect_uid"]
    if finish:
        said = {"status": finish, "result": result, "error": error}
        caller("finish_effect", effect_uid=effect, attempt=1, **said)
    return effect


def settle_all(db: Database) -> None:
    """Settle the running runs, so that every run has called `refund` and may be told so again."""
    World.of(db)
    with db.superuser() as root:
        root.execute(
            """
            update durable.runs
            set status = 'failed', settled_at = now(), tools_executed = '{refund}', lease_holder = null
            where status = 'running'
            """
        )


def expire(db: Database, run: UUID) -> None:
    """Let the lease of a run, and of what it has begun, be over."""
    with db.superuser() as root:
        root.execute("update durable.runs set lease_expires_at = now() where run_uid = %s", (run,))
        query = "update durable.effects set lease_expires_at = now() where held_by = %s and status = 'begun'"
        root.execute(query, (run,))


def effect_of(db: Database, uid: UUID) -> DictRow:
    """Read an effect past row-level security."""
    with db.superuser() as root:
        row = root.execute("select * from durable.effects where effect_uid = %s", (uid,)).fetchone()
    assert row is not None
    return row


# An update that names no column of the row it changes is checked by UPDATE policies alone.
TOUCH = {"runs": "tools_executed = '{refund}'", "effects": "error = null"} | dict.fromkeys(
    ("app_states", "user_states", "sessions", "tools"), "updated_at = '2026-01-01'"
)


def tables(root: Connection) -> list[str]:
    found = root.execute("select relname from pg_class where relnamespace = 'durable'::regnamespace and relkind = 'r'")
    return sorted(row["relname"] for row in found)


def snapshot(db: Database) -> dict[str, list[DictRow]]:
    """Every row of every table, read past row-level security."""
    with db.superuser() as root:
        return {
            table: root.execute(
                sql.SQL('select t.* from {} as t order by t::text collate "C"').format(sql.Identifier("durable", table))
            ).fetchall()
            for table in tables(root)
        }


@contextmanager
def unchanged(db: Database) -> Iterator[None]:
    """Expect that the block leaves every row of every table as it was."""
    before = snapshot(db)
    yield
    assert snapshot(db) == before


@contextmanager
def superuser_replica(db: Database) -> Iterator[Connection]:
    """A superuser for whom triggers that are not ENABLE ALWAYS, foreign keys included, don't fire."""
    with db.superuser() as root:
        root.execute("set local session_replication_role = replica")
        yield root


@contextmanager
def owner_without_force(db: Database, table: str) -> Iterator[Connection]:
    """The owner in a migration that lifts FORCE, as a backfill does: past every policy, before the triggers."""
    with db.as_owner() as owner:
        owner.execute(sql.SQL("alter table {} no force row level security").format(sql.Identifier("durable", table)))
        yield owner
