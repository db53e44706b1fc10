"""The tables of schema durable as SQLAlchemy Core tables, for people who query. Written by tools/generate_tables.py.

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
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TIMESTAMP

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

metadata = MetaData(schema="durable")

app_states = Table(
    "app_states",
    metadata,
    Column("tenant_id", Text, nullable=False),
    Column("app_name", Text, nullable=False),
    Column("state", JSONB, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("updated_at", TIMESTAMP(timezone=True), nullable=False),
    PrimaryKeyConstraint("tenant_id", "app_name", name="app_states_pkey"),
)

audit_log = Table(
    "audit_log",
    metadata,
    Column("tenant_id", Text, nullable=False),
    Column("audit_uid", Uuid, nullable=False),
    Column("acted_at", TIMESTAMP(timezone=True), nullable=False),
    Column("login", Text, nullable=False),
    Column("acted_by", Text),
    Column("action", Text, nullable=False),
    Column("subject_kind", Text, nullable=False),
    Column("subject_uid", Uuid),
    Column("reason", Text, nullable=False),
    Column("detail", JSONB, nullable=False),
    PrimaryKeyConstraint("tenant_id", "audit_uid", name="audit_log_pkey"),
)

tools = Table(
    "tools",
    metadata,
    Column("tenant_id", Text, nullable=False),
    Column("app_name", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("replay_class", Text, nullable=False),
    Column("updated_at", TIMESTAMP(timezone=True), nullable=False),
    PrimaryKeyConstraint("tenant_id", "app_name", "tool", name="tools_pkey"),
)

transitions = Table(
    "transitions",
    metadata,
    Column("entity", Text, nullable=False),
    Column("from_status", Text, nullable=False),
    Column("to_status", Text, nullable=False),
    Column("meaning", Text, nullable=False),
    PrimaryKeyConstraint("entity", "from_status", "to_status", name="transitions_pkey"),
)

user_states = Table(
    "user_states",
    metadata,
    Column("tenant_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("app_name", Text, nullable=False),
    Column("state", JSONB, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("updated_at", TIMESTAMP(timezone=True), nullable=False),
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
    Column("tenant_id", Text, nullable=False),
    Column("session_uid", Uuid, nullable=False),
    Column("app_name", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("state", JSONB, nullable=False),
    Column("opened_with", JSONB),
    Column("revision", Integer, nullable=False),
    Column("last_seq", Integer, nullable=False),
    Column("head_hash", LargeBinary),
    Column("rewinds", Integer, nullable=False),
    Column("created_at", TIMESTAMP(timezone=True), nullable=False),
    Column("updated_at", TIMESTAMP(timezone=True), nullable=False),
    Column("closed_at", TIMESTAMP(timezone=True)),
    Column("close_reason", Text),
    PrimaryKeyConstraint("tenant_id", "session_uid", name="sessions_pkey"),
    UniqueConstraint("tenant_id", "session_uid", "user_id", name="sessions_owner_key"),
    ForeignKeyConstraint(
        ["tenant_id", "user_id", "app_name"],
        ["durable.user_states.tenant_id", "durable.user_states.user_id", "durable.user_states.app_name"],
        name="sessions_user_state_exists",
    ),
    Index(
        "sessions_one_open_of_a_name",
        "tenant_id",
        "user_id",
        "app_name",
        "session_id",
        unique=True,
        postgresql_where=text("closed_at is null"),
    ),
)

events = Table(
    "events",
    metadata,
    Column("tenant_id", Text, nullable=False),
    Column("session_uid", Uuid, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("event_id", Text, nullable=False),
    Column("invocation_id", Text),
    Column("author", Text, nullable=False),
    Column("content", JSONB),
    Column("metadata", JSONB, nullable=False),
    Column("occurred_at", TIMESTAMP(timezone=True), nullable=False),
    Column("recorded_at", TIMESTAMP(timezone=True), nullable=False),
    Column("user_id", Text, nullable=False),
    Column("attempt", Integer),
    Column("opening", Boolean, nullable=False),
    Column("repeatable", Boolean, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("tool_calls", ARRAY(Text), nullable=False),
    Column("extra_tool_calls", ARRAY(Text), nullable=False),
    Column("rewind_to", Integer),
    Column("content_digest", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("hash_version", SmallInteger, nullable=False),
    PrimaryKeyConstraint("tenant_id", "session_uid", "seq", name="events_pkey"),
    UniqueConstraint("tenant_id", "session_uid", "event_id", name="events_event_id_once"),
    ForeignKeyConstraint(
        ["tenant_id", "session_uid", "user_id"],
        ["durable.sessions.tenant_id", "durable.sessions.session_uid", "durable.sessions.user_id"],
        name="events_session_is_the_users",
    ),
    Index(
        "events_by_invocation",
        "tenant_id",
        "session_uid",
        "invocation_id",
        "seq",
        postgresql_where=text("invocation_id is not null"),
    ),
    Index(
        "events_one_opening_message",
        "tenant_id",
        "session_uid",
        "invocation_id",
        "author",
        "generation",
        unique=True,
        postgresql_where=text("opening"),
    ),
    Index("events_rewinds", "tenant_id", "session_uid", "seq", postgresql_where=text("rewind_to is not null")),
)

runs = Table(
    "runs",
    metadata,
    Column("tenant_id", Text, nullable=False),
    Column("run_uid", Uuid, nullable=False),
    Column("session_uid", Uuid, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("invocation_id", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("input", JSONB),
    Column("status", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("first_attempt", Integer, nullable=False),
    Column("max_attempts", Integer),
    Column("lease_holder", Text),
    Column("lease_expires_at", TIMESTAMP(timezone=True), nullable=False),
    Column("interrupted_with", JSONB),
    Column("tools_executed", ARRAY(Text)),
    Column("result", JSONB),
    Column("error", JSONB),
    Column("started_at", TIMESTAMP(timezone=True), nullable=False),
    Column("settled_at", TIMESTAMP(timezone=True)),
    PrimaryKeyConstraint("tenant_id", "run_uid", name="runs_pkey"),
    UniqueConstraint("tenant_id", "session_uid", "invocation_id", "generation", name="runs_one_of_an_invocation"),
    UniqueConstraint("tenant_id", "user_id", "run_uid", name="runs_owner_key"),
    ForeignKeyConstraint(
        ["tenant_id", "session_uid", "user_id"],
        ["durable.sessions.tenant_id", "durable.sessions.session_uid", "durable.sessions.user_id"],
        name="runs_session_is_the_users",
    ),
    Index("runs_interrupted", "lease_expires_at", postgresql_where=text("status = 'interrupted'::text")),
    Index("runs_running", "lease_expires_at", postgresql_where=text("status = 'running'::text")),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("tenant_id", Text, nullable=False),
    Column("run_uid", Uuid, nullable=False),
    Column("step", Integer, nullable=False),
    Column("previous_step", Integer),
    Column("user_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("schema_version", Integer, nullable=False),
    Column("event_seq", Integer, nullable=False),
    Column("state", JSONB, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("created_at", TIMESTAMP(timezone=True), nullable=False),
    PrimaryKeyConstraint("tenant_id", "run_uid", "step", name="checkpoints_pkey"),
    ForeignKeyConstraint(
        ["tenant_id", "user_id", "run_uid"],
        ["durable.runs.tenant_id", "durable.runs.user_id", "durable.runs.run_uid"],
        name="checkpoints_run_is_the_users",
    ),
    ForeignKeyConstraint(
        ["tenant_id", "run_uid", "previous_step"],
        ["durable.checkpoints.tenant_id", "durable.checkpoints.run_uid", "durable.checkpoints.step"],
        name="checkpoints_step_before_exists",
    ),
)

effects = Table(
    "effects",
    metadata,
    Column("tenant_id", Text, nullable=False),
    Column("effect_uid", Uuid, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("app_name", Text, nullable=False),
    Column("run_uid", Uuid, nullable=False),
    Column("step", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("tool", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("intent", Text),
    Column("args", JSONB),
    Column("args_digest", LargeBinary, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("idempotency_key", Text, nullable=False),
    Column("provider_dedupes_for", Interval),
    Column("first_begun_at", TIMESTAMP(timezone=True), nullable=False),
    Column("status", Text, nullable=False),
    Column("held_by", Uuid, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("begun_at", TIMESTAMP(timezone=True), nullable=False),
    Column("lease_expires_at", TIMESTAMP(timezone=True), nullable=False),
    Column("result", JSONB),
    Column("error", JSONB),
    Column("evidence", JSONB),
    Column("finished_at", TIMESTAMP(timezone=True)),
    PrimaryKeyConstraint("tenant_id", "effect_uid", name="effects_pkey"),
    ForeignKeyConstraint(
        ["tenant_id", "held_by"], ["durable.runs.tenant_id", "durable.runs.run_uid"], name="effects_holder_is_a_run"
    ),
    ForeignKeyConstraint(
        ["tenant_id", "user_id", "run_uid"],
        ["durable.runs.tenant_id", "durable.runs.user_id", "durable.runs.run_uid"],
        name="effects_run_is_the_users",
    ),
    Index("effects_of_a_user", "tenant_id", "user_id", "effect_uid"),
    Index(
        "effects_once_for_a_tenant",
        "tenant_id",
        "app_name",
        "intent",
        unique=True,
        postgresql_where=text("(scope = 'tenant'::text) and (status <> 'failed'::text)"),
    ),
    Index(
        "effects_once_for_a_user",
        "tenant_id",
        "user_id",
        "app_name",
        "intent",
        unique=True,
        postgresql_where=text("(scope = 'user'::text) and (status <> 'failed'::text)"),
    ),
    Index(
        "effects_once_in_a_run",
        "tenant_id",
        "run_uid",
        "step",
        "tool",
        "args_digest",
        "ordinal",
        unique=True,
        postgresql_where=text("(scope = 'run'::text) and (status <> 'failed'::text)"),
    ),
    Index(
        "effects_open",
        "tenant_id",
        "held_by",
        postgresql_where=text("status = any (array['begun'::text, 'unverified'::text])"),
    ),
    Index(
        "effects_tries_for_a_tenant",
        "tenant_id",
        "app_name",
        "intent",
        "failures",
        unique=True,
        postgresql_where=text("scope = 'tenant'::text"),
    ),
    Index(
        "effects_tries_for_a_user",
        "tenant_id",
        "user_id",
        "app_name",
        "intent",
        "failures",
        unique=True,
        postgresql_where=text("scope = 'user'::text"),
    ),
    Index(
        "effects_tries_in_a_run",
        "tenant_id",
        "run_uid",
        "step",
        "tool",
        "args_digest",
        "ordinal",
        "failures",
        unique=True,
        postgresql_where=text("scope = 'run'::text"),
    ),
)

effect_calls = Table(
    "effect_calls",
    metadata,
    Column("tenant_id", Text, nullable=False),
    Column("run_uid", Uuid, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("effect_uid", Uuid, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("called_at", TIMESTAMP(timezone=True), nullable=False),
    PrimaryKeyConstraint("tenant_id", "run_uid", "attempt", "effect_uid", name="effect_calls_pkey"),
    ForeignKeyConstraint(
        ["tenant_id", "effect_uid"],
        ["durable.effects.tenant_id", "durable.effects.effect_uid"],
        name="effect_calls_effect_exists",
    ),
    ForeignKeyConstraint(
        ["tenant_id", "user_id", "run_uid"],
        ["durable.runs.tenant_id", "durable.runs.user_id", "durable.runs.run_uid"],
        name="effect_calls_run_is_the_users",
    ),
)
