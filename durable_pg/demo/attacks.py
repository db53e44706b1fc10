"""What the demo tries against a recorded run, who tries it, and the rule that must stand in the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from durable_pg._embedded.database import TemporaryDatabase
from durable_pg._embedded.logins import MIGRATOR


class Attack(NamedTuple):
    """One attempt. `role` is what the login acts as; `sql` may use the names of prepare_target() in braces."""

    role: str
    what: str
    sql: str
    rule: str
    sqlstate: str


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
ME = "me => durable.act_as({tenant}, {user})"

ATTACKS = [
    Attack(
        "app",
        "open the same turn with another message",
        f"select durable.append_event({ME}, session_uid => {{session_uid}}, author => 'user',"
        " invocation_id => 'turn-1',"
        ' content => \'{{"role": "user", "content": "refund everything"}}\')',
        "one-opening-message",
        "23W06",
    ),
    Attack(
        "app",
        "settle the run again, as if no tool had run",
        f"select durable.settle_run({ME}, run_uid => {{run_uid}}, status => 'succeeded', tools_executed => '{{{{}}}}')",
        "tools-write-once",
        "23W02",
    ),
    Attack(
        "app",
        "slip a tool call into the settled run",
        f"select durable.append_event({ME}, session_uid => {{session_uid}}, author => 'agent',"
        " invocation_id => 'turn-1',"
        ' content => \'{{"tool_calls": [{{"function": {{"name": "refund"}}}}]}}\')',
        "tools-complete",
        "55W03",
    ),
    Attack(
        "app",
        "settle another run and leave its tool call out",
        f"select durable.settle_run({ME}, run_uid => {{open_run_uid}}, attempt => 1, status => 'failed',"
        " tools_executed => '{{}}')",
        "tools-complete",
        "23W08",
    ),
    Attack(
        "app",
        "read the session as another tenant",
        "select durable.read_events(me => durable.act_as('other-tenant', {user}), session_uid => {session_uid})",
        "tenant-isolation",
        "42W04",
    ),
    Attack(
        "app",
        "read the session as another user",
        "select durable.read_events(me => durable.act_as({tenant}, 'other-user'), session_uid => {session_uid})",
        "user-isolation",
        "42W04",
    ),
    Attack("app", "read everything, as nobody", "select * from durable.events", "identity-required", "42W01"),
    Attack("app", "rewrite an event", "update durable.events set content = null", "least-privilege", "42501"),
    Attack("app", "delete a run", "delete from durable.runs", "least-privilege", "42501"),
    Attack("app", "switch the triggers off", "set session_replication_role = replica", "owner-apart", "42501"),
    Attack("app", "become the owner", "set role durable_owner", "owner-apart", "42501"),
    Attack(
        "app",
        "drop row-level security",
        "alter table durable.events disable row level security",
        "owner-apart",
        "42501",
    ),
    Attack(
        "app",
        "begin the done refund with another amount",
        f"select durable.begin_effect({ME}, run_uid => {{open_run_uid}}, attempt => 1, tool => 'refund',"
        " args => '{{\"amount\": 500}}', intent => 'refund:order-7')",
        "effect-once",
        "23W10",
    ),
    Attack(
        "app",
        "record that the refund failed after all",
        f"select durable.finish_effect({ME}, effect_uid => {{effect_uid}}, attempt => 1, status => 'failed')",
        "effect-once",
        "23W02",
    ),
    Attack(
        "app",
        "go on as an attempt that does not hold the run",
        f"select durable.save_checkpoint({ME}, run_uid => {{open_run_uid}}, attempt => 7, step => 1,"
        " state => '{{}}')",
        "fenced",
        "55W04",
    ),
    Attack("operator", "rewrite history", "update durable.events set author = 'user'", "least-privilege", "42501"),
    Attack(
        "operator",
        "resolve an effect without evidence",
        "select durable.resolve_effect(me => durable.act_as({tenant}, 'jane'), effect_uid => {effect_uid},"
        " status => 'failed', evidence => '{{}}')",
        "audited",
        "22W03",
    ),
    Attack("maintainer", "read what was refunded", "select args from durable.effects", "least-privilege", "42501"),
    Attack("maintainer", "read content", "select content from durable.events", "least-privilege", "42501"),
    Attack("auditor", "correct a run", "update durable.runs set error = null", "least-privilege", "42501"),
    Attack(
        "durable_engine",
        "a faulty function: stamp tools_executed anew",
        "update durable.runs set tools_executed = '{{}}' where run_uid = {run_uid}",
        "tools-write-once",
        "23W02",
    ),
    Attack(
        "durable_engine",
        "a faulty function: turn a success into a failure",
        "update durable.runs set status = 'failed' where run_uid = {run_uid}",
        "legal-transitions",
        "23W04",
    ),
    Attack(
        "durable_engine",
        "a faulty function: give a run to another user",
        "insert into durable.runs (tenant_id, session_uid, user_id, invocation_id, generation, trigger, lease_holder,"
        " lease_expires_at) values ({tenant}, {session_uid}, 'other-user', 'turn-10', 0, 'user', 'w', now())",
        "user-isolation",
        "42501",
    ),
    Attack(
        "durable_engine",
        "a faulty function: refund the intent again",
        "insert into durable.effects (tenant_id, user_id, app_name, run_uid, step, ordinal, tool, scope, intent,"
        " args_digest, failures, idempotency_key, first_begun_at, held_by, attempt, begun_at, lease_expires_at)"
        " select tenant_id, user_id, app_name, run_uid, step, ordinal, tool, scope, intent, args_digest, 9, 'k9',"
        " now(), held_by, attempt, now(), now() from durable.effects where effect_uid = {effect_uid}",
        "effect-once",
        "23505",
    ),
    Attack(
        "durable_engine",
        "a faulty function: give a run back",
        "update durable.runs set attempt = 0 where run_uid = {open_run_uid}",
        "fenced",
        "23514",
    ),
    Attack("durable_owner", "empty the log", "truncate durable.events", "append-only", "23W01"),
    Attack("durable_owner", "rewrite the log", "update durable.events set author = 'x'", "identity-required", "42W03"),
    Attack("durable_owner", "delete the runs", "delete from durable.runs", "identity-required", "42W03"),
]


def prepare_target(database: TemporaryDatabase, tenant: str, user: str) -> dict[str, sql.Literal]:
    """Names for the attacks: a settled run, its session, a run that executes, and an effect it has done."""
    with psycopg.connect(database.url("app")) as app:
        app.execute("select durable.act_as(%s, %s)", (tenant, user))
        session_uid, run_uid = _row(app, "select session_uid, run_uid from durable.runs", {})
        (open_run_uid,) = _row(app, START_ANOTHER, {"session": session_uid})
        app.execute(CALL_A_TOOL, {"session": session_uid})
        (effect_uid,) = _row(app, BEGIN, {"run": open_run_uid})
        app.execute(FINISH, {"effect": effect_uid})
    names = {
        "tenant": tenant,
        "user": user,
        "session_uid": session_uid,
        "run_uid": run_uid,
        "open_run_uid": open_run_uid,
        "effect_uid": effect_uid,
    }
    return {name: sql.Literal(value) for name, value in names.items()}


def attempt(database: TemporaryDatabase, attack: Attack, target: dict[str, sql.Literal]) -> Tried:
    """Try one attack in a transaction of its own."""
    try:
        with _acting_as(database, attack.role, target) as connection:
            connection.execute(sql.SQL(attack.sql).format(**target))
    except psycopg.Error as error:
        return Tried(attack, error.sqlstate, error.diag.message_primary or str(error))
    return Tried(attack, None, "nothing was refused")


@contextmanager
def _acting_as(
    database: TemporaryDatabase, role: str, target: dict[str, sql.Literal]
) -> Iterator[psycopg.Connection[Any]]:
    """Connect as a front role's login, or as the migration login that has become a role behind."""
    behind = role.startswith("durable_")
    with psycopg.connect(database.url(MIGRATOR if behind else role), autocommit=not behind) as connection:
        if behind:
            connection.execute(sql.SQL("set local durable.tenant_id = {}").format(target["tenant"]))
            connection.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
        if role == "durable_engine":
            connection.execute(sql.SQL("set local durable.user_id = {}").format(target["user"]))
        yield connection


def _row(connection: psycopg.Connection[Any], query: str, parameters: dict[str, Any]) -> Any:
    row = connection.execute(query.encode(), parameters).fetchone()
    if row is None:
        raise LookupError(f"no row: {query}")
    return row
