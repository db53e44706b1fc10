"""A small world, made through the SQL interface alone: the same names for three people, two of them in one tenant.

Each has a session `s-1` with six events, a settled run `inv-1` and a running one `inv-2`, and a closed session `s-2`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import sql
from psycopg.rows import DictRow

from tests.harness import Connection, Database

PEOPLE = (("T1", "U1"), ("T1", "U2"), ("T2", "U1"))


@dataclass(frozen=True)
class Home:
    """What one person has: uids of sessions and runs."""

    tenant: str
    user: str
    session: UUID
    closed: UUID
    settled: UUID
    running: UUID


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
            done.run_uid as settled, running.run_uid as running
        from durable.sessions as s
        join durable.sessions as c using (tenant_id, user_id)
        join durable.runs as done on done.tenant_id = s.tenant_id and done.session_uid = s.session_uid
        join durable.runs as running on running.tenant_id = s.tenant_id and running.session_uid = s.session_uid
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


def call(connection: Connection, function: str, *, me: Any = None, **arguments: Any) -> DictRow:
    """Call a function of the schema in named notation, as `me` (tenant and user) or as whoever the transaction is."""
    given: list[sql.Composable] = [
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in arguments
    ]
    parameters = dict(arguments)
    if me is not None:
        given.insert(0, sql.SQL("me => durable.act_as(%(tenant_of_me)s, %(user_of_me)s)"))
        parameters["tenant_of_me"], parameters["user_of_me"] = me
    query = sql.SQL("select * from {}({})").format(sql.Identifier("durable", function), sql.SQL(", ").join(given))
    row = connection.execute(query, parameters).fetchone()
    assert row is not None
    return row


def _furnish(caller: Caller) -> None:
    session = caller(
        "open_session", app_name="support", session_id="s-1", state='{"a": 1, "app:theme": "dark", "user:name": "Ada"}'
    )["session_uid"]
    for invocation in ("inv-1", "inv-2"):
        run = caller("start_run", session_uid=session, invocation_id=invocation, input='{"text": "refund order 7"}')
        say = {"session_uid": session, "invocation_id": invocation}
        caller("append_event", author="user", content='{"parts": [{"text": "refund order 7"}]}', **say)
        caller("append_event", author="agent", content='{"parts": [{"function_call": {"name": "refund"}}]}', **say)
        if invocation == "inv-1":
            caller("settle_run", run_uid=run["run_uid"], status="failed", error='{"code": 429}', result='{"n": 1}')
    caller("append_event", session_uid=session, author="user", content='{"text": "typing"}', event_id="loose")
    caller("append_event", session_uid=session, author="system", content='{"text": "note"}', metadata='{"trace": 1}')
    closed = caller("open_session", app_name="support", session_id="s-2")["session_uid"]
    caller("close_session", session_uid=closed, reason="done")


def settle_all(db: Database) -> None:
    """Settle the running runs, so that every run has called `refund` and may be told so again."""
    World.of(db)
    with db.superuser() as root:
        root.execute(
            """
            update durable.runs set status = 'failed', settled_at = now(), tools_executed = '{refund}'
            where status = 'running'
            """
        )


# An update that names no column of the row it changes is checked by UPDATE policies alone.
TOUCH = {"runs": "tools_executed = '{refund}'"} | dict.fromkeys(
    ("app_states", "user_states", "sessions"), "updated_at = '2026-01-01'"
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


def insert(connection: Connection, table: str, row: dict[str, Any]) -> int:
    """Insert one row into a table directly; text becomes what the column is."""
    query = sql.SQL("insert into {} ({}) values ({})").format(
        sql.Identifier("durable", table),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join(map(sql.Placeholder, row)),
    )
    return connection.execute(query, row).rowcount


def app_state_row(tenant: str, **changes: Any) -> dict[str, Any]:
    return {"tenant_id": tenant, "app_name": "sales", **changes}


def user_state_row(home: Home, **changes: Any) -> dict[str, Any]:
    return {"tenant_id": home.tenant, "user_id": home.user, "app_name": "sales", **changes}


def session_row(home: Home, **changes: Any) -> dict[str, Any]:
    return {"tenant_id": home.tenant, "user_id": home.user, "app_name": "support", "session_id": "s-9", **changes}


def run_row(home: Home, **changes: Any) -> dict[str, Any]:
    return {
        "tenant_id": home.tenant,
        "user_id": home.user,
        "session_uid": home.session,
        "invocation_id": "inv-9",
        "generation": 0,
        "trigger": "user",
        **changes,
    }


def event_row(home: Home, **changes: Any) -> dict[str, Any]:
    """A next event that every constraint accepts."""
    return {
        "tenant_id": home.tenant,
        "user_id": home.user,
        "session_uid": home.session,
        "seq": 7,
        "event_id": "e-9",
        "invocation_id": "inv-9",
        "author": "user",
        "content": '{"text": "hi"}',
        "occurred_at": "2026-01-01T00:00:00Z",
        "recorded_at": "2026-01-01T00:00:00Z",
        "opening": True,
        "repeatable": False,
        "generation": 0,
        "tool_calls": [],
        "extra_tool_calls": [],
        "content_digest": b"0" * 32,
        "hash": b"0" * 32,
        "hash_version": 1,
        **changes,
    }


def audit_row(tenant: str, **changes: Any) -> dict[str, Any]:
    return {
        "tenant_id": tenant,
        "acted_by": "on-call",
        "action": "cancel_run",
        "subject_kind": "run",
        "reason": "asked by phone",
        **changes,
    }
