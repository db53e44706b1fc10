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

from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
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

__all__ = ["app_states", "audit_log", "events", "metadata", "runs", "sessions", "transitions", "user_states"]

metadata = MetaData(schema="durable")


def _always(name: str, type_: Any) -> Column[Any]:
    return Column(name, type_, nullable=False)


def _maybe(name: str, type_: Any) -> Column[Any]:
    return Column(name, type_, nullable=True)


def _time() -> TIMESTAMP:
    return TIMESTAMP(timezone=True)


app_states = Table(
    "app_states",
    metadata,
    _always("tenant_id", Text),
    _always("app_name", Text),
    _always("state", JSONB),
    _always("revision", Integer),
    _always("updated_at", _time()),
    PrimaryKeyConstraint("tenant_id", "app_name", name="app_states_pkey"),
)

user_states = Table(
    "user_states",
    metadata,
    _always("tenant_id", Text),
    _always("user_id", Text),
    _always("app_name", Text),
    _always("state", JSONB),
    _always("revision", Integer),
    _always("updated_at", _time()),
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
    _always("tenant_id", Text),
    _always("session_uid", Uuid),
    _always("app_name", Text),
    _always("user_id", Text),
    _always("session_id", Text),
    _always("state", JSONB),
    _maybe("opened_with", JSONB),
    _always("revision", Integer),
    _always("last_seq", Integer),
    _maybe("head_hash", LargeBinary),
    _always("rewinds", Integer),
    _always("created_at", _time()),
    _always("updated_at", _time()),
    _maybe("closed_at", _time()),
    _maybe("close_reason", Text),
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
    _always("tenant_id", Text),
    _always("session_uid", Uuid),
    _always("seq", Integer),
    _always("event_id", Text),
    _maybe("invocation_id", Text),
    _always("author", Text),
    _maybe("content", JSONB),
    _always("metadata", JSONB),
    _always("occurred_at", _time()),
    _always("recorded_at", _time()),
    _always("user_id", Text),
    _maybe("attempt", Integer),
    _always("opening", Boolean),
    _always("repeatable", Boolean),
    _always("generation", Integer),
    _always("tool_calls", ARRAY(Text)),
    _always("extra_tool_calls", ARRAY(Text)),
    _maybe("rewind_to", Integer),
    _always("content_digest", LargeBinary),
    _always("hash", LargeBinary),
    _always("hash_version", SmallInteger),
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
    _always("tenant_id", Text),
    _always("run_uid", Uuid),
    _always("session_uid", Uuid),
    _always("user_id", Text),
    _always("invocation_id", Text),
    _always("generation", Integer),
    _always("trigger", Text),
    _maybe("input", JSONB),
    _always("status", Text),
    _always("attempt", Integer),
    _maybe("tools_executed", ARRAY(Text)),
    _maybe("result", JSONB),
    _maybe("error", JSONB),
    _always("started_at", _time()),
    _maybe("settled_at", _time()),
    PrimaryKeyConstraint("tenant_id", "run_uid", name="runs_pkey"),
    UniqueConstraint("tenant_id", "session_uid", "invocation_id", "generation", name="runs_one_of_an_invocation"),
    _of_the_users_session("runs_session_is_the_users"),
    Index("runs_of_a_user", "tenant_id", "user_id", "run_uid"),
)

transitions = Table(
    "transitions",
    metadata,
    _always("entity", Text),
    _always("from_status", Text),
    _always("to_status", Text),
    _always("meaning", Text),
    PrimaryKeyConstraint("entity", "from_status", "to_status", name="transitions_pkey"),
)

audit_log = Table(
    "audit_log",
    metadata,
    _always("tenant_id", Text),
    _always("audit_uid", Uuid),
    _always("acted_at", _time()),
    _always("login", Text),
    _maybe("acted_by", Text),
    _always("action", Text),
    _always("subject_kind", Text),
    _maybe("subject_uid", Uuid),
    _always("reason", Text),
    _always("detail", JSONB),
    PrimaryKeyConstraint("tenant_id", "audit_uid", name="audit_log_pkey"),
)
