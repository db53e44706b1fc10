"""The tables of schema durable as SQLAlchemy Core tables, for people who query.

Read only: no runtime login may INSERT, UPDATE or DELETE; rows are written by the functions. Row-level security applies:
an application's login first calls `durable.act_as` in the same transaction, or every query raises 42W01.

JSON columns hold the stored form, in which NUL and lone surrogates are escaped. `func.durable.unescape_json(column)`
gives what was sent:

    with engine.begin() as connection:
        connection.execute(select(func.durable.act_as("acme", "user-7")))
        rows = connection.execute(select(events.c.seq, func.durable.unescape_json(events.c.content)).limit(10))

Domains appear as their base type. CHECK constraints, defaults, triggers and policies are the database's alone.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from durable_pg._columns import always, maybe, metadata, time
from durable_pg._ledger_tables import checkpoints, effect_calls, effects, tools

__all__ = [
    "app_states",
    "audit_log",
    "checkpoints",
    "effect_calls",
    "effects",
    "events",
    "metadata",
    "runs",
    "sessions",
    "tools",
    "transitions",
    "user_states",
]

app_states = Table(
    "app_states",
    metadata,
    always("tenant_id", Text),
    always("app_name", Text),
    always("state", JSONB),
    always("revision", Integer),
    always("updated_at", time()),
    PrimaryKeyConstraint("tenant_id", "app_name", name="app_states_pkey"),
)

user_states = Table(
    "user_states",
    metadata,
    always("tenant_id", Text),
    always("user_id", Text),
    always("app_name", Text),
    always("state", JSONB),
    always("revision", Integer),
    always("updated_at", time()),
    PrimaryKeyConstraint("tenant_id", "user_id", "app_name", name="user_states_pkey"),
    ForeignKeyConstraint(
        ["tenant_id", "app_name"],
        ["durable.app_states.tenant_id", "durable.app_states.app_name"],
        name="user_states_app_exists",
    ),
)

sessions = Table(
    "sessions",
    metadata,
    always("tenant_id", Text),
    always("session_uid", Uuid),
    always("app_name", Text),
    always("user_id", Text),
    always("session_id", Text),
    always("state", JSONB),
    maybe("opened_with", JSONB),
    always("revision", Integer),
    always("last_seq", Integer),
    maybe("head_hash", LargeBinary),
    always("rewinds", Integer),
    always("created_at", time()),
    always("updated_at", time()),
    maybe("closed_at", time()),
    maybe("close_reason", Text),
    PrimaryKeyConstraint("tenant_id", "session_uid", name="sessions_pkey"),
    UniqueConstraint("tenant_id", "session_uid", "user_id", name="sessions_owner_key"),
    ForeignKeyConstraint(
        ["tenant_id", "user_id", "app_name"],
        ["durable.user_states.tenant_id", "durable.user_states.user_id", "durable.user_states.app_name"],
        name="sessions_user_state_exists",
    ),
    Index(
        "sessions_one_open_of_a_name",
        *("tenant_id", "user_id", "app_name", "session_id"),
        unique=True,
        postgresql_where=text("closed_at is null"),
    ),
)


def _of_the_users_session(name: str) -> ForeignKeyConstraint:
    columns = ["tenant_id", "session_uid", "user_id"]
    return ForeignKeyConstraint(columns, [f"durable.sessions.{column}" for column in columns], name=name)


events = Table(
    "events",
    metadata,
    always("tenant_id", Text),
    always("session_uid", Uuid),
    always("seq", Integer),
    always("event_id", Text),
    maybe("invocation_id", Text),
    always("author", Text),
    maybe("content", JSONB),
    always("metadata", JSONB),
    always("occurred_at", time()),
    always("recorded_at", time()),
    always("user_id", Text),
    maybe("attempt", Integer),
    always("opening", Boolean),
    always("repeatable", Boolean),
    always("generation", Integer),
    always("tool_calls", ARRAY(Text)),
    always("extra_tool_calls", ARRAY(Text)),
    maybe("rewind_to", Integer),
    always("content_digest", LargeBinary),
    always("hash", LargeBinary),
    always("hash_version", SmallInteger),
    PrimaryKeyConstraint("tenant_id", "session_uid", "seq", name="events_pkey"),
    UniqueConstraint("tenant_id", "session_uid", "event_id", name="events_event_id_once"),
    _of_the_users_session("events_session_is_the_users"),
    Index(
        "events_one_opening_message",
        *("tenant_id", "session_uid", "invocation_id", "author", "generation"),
        unique=True,
        postgresql_where=text("opening"),
    ),
    Index(
        "events_by_invocation",
        *("tenant_id", "session_uid", "invocation_id", "seq"),
        postgresql_where=text("invocation_id is not null"),
    ),
    Index("events_rewinds", "tenant_id", "session_uid", "seq", postgresql_where=text("rewind_to is not null")),
)

runs = Table(
    "runs",
    metadata,
    always("tenant_id", Text),
    always("run_uid", Uuid),
    always("session_uid", Uuid),
    always("user_id", Text),
    always("invocation_id", Text),
    always("generation", Integer),
    always("trigger", Text),
    maybe("input", JSONB),
    always("status", Text),
    always("attempt", Integer),
    always("first_attempt", Integer),
    maybe("max_attempts", Integer),
    maybe("lease_holder", Text),
    always("lease_expires_at", time()),
    maybe("interrupted_with", JSONB),
    maybe("tools_executed", ARRAY(Text)),
    maybe("result", JSONB),
    maybe("error", JSONB),
    always("started_at", time()),
    maybe("settled_at", time()),
    PrimaryKeyConstraint("tenant_id", "run_uid", name="runs_pkey"),
    UniqueConstraint("tenant_id", "user_id", "run_uid", name="runs_owner_key"),
    UniqueConstraint("tenant_id", "session_uid", "invocation_id", "generation", name="runs_one_of_an_invocation"),
    _of_the_users_session("runs_session_is_the_users"),
    Index("runs_interrupted", "lease_expires_at", postgresql_where=text("status = 'interrupted'::text")),
    Index("runs_running", "lease_expires_at", postgresql_where=text("status = 'running'::text")),
)


transitions = Table(
    "transitions",
    metadata,
    always("entity", Text),
    always("from_status", Text),
    always("to_status", Text),
    always("meaning", Text),
    PrimaryKeyConstraint("entity", "from_status", "to_status", name="transitions_pkey"),
)

audit_log = Table(
    "audit_log",
    metadata,
    always("tenant_id", Text),
    always("audit_uid", Uuid),
    always("acted_at", time()),
    always("login", Text),
    maybe("acted_by", Text),
    always("action", Text),
    always("subject_kind", Text),
    maybe("subject_uid", Uuid),
    always("reason", Text),
    always("detail", JSONB),
    PrimaryKeyConstraint("tenant_id", "audit_uid", name="audit_log_pkey"),
)
