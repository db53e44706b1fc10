"""The tables of effects, checkpoints and tools; `tables` exports them."""

from __future__ import annotations

from sqlalchemy import (
    ForeignKeyConstraint,
    Index,
    Integer,
    Interval,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from durable_pg._columns import always, maybe, metadata, time


def _of_the_users_run(name: str) -> ForeignKeyConstraint:
    columns = ["tenant_id", "user_id", "run_uid"]
    return ForeignKeyConstraint(columns, [f"durable.runs.{column}" for column in columns], name=name)


def _one_key(scope: str, *columns: str) -> tuple[Index, Index]:
    """Return what keeps the effects of a scope apart: one that is not failed, and each count of failures once."""
    name = {"run": "in_a_run", "user": "for_a_user", "tenant": "for_a_tenant"}[scope]
    of_scope = f"scope = '{scope}'::text"
    once = text(f"({of_scope}) and (status <> 'failed'::text)")
    return (
        Index(f"effects_once_{name}", *columns, unique=True, postgresql_where=once),
        Index(f"effects_tries_{name}", *columns, "failures", unique=True, postgresql_where=text(of_scope)),
    )


effects = Table(
    "effects",
    metadata,
    always("tenant_id", Text),
    always("effect_uid", Uuid),
    always("user_id", Text),
    always("app_name", Text),
    always("run_uid", Uuid),
    always("step", Integer),
    always("ordinal", Integer),
    always("tool", Text),
    always("scope", Text),
    maybe("intent", Text),
    maybe("args", JSONB),
    always("args_digest", LargeBinary),
    always("failures", Integer),
    always("idempotency_key", Text),
    maybe("provider_dedupes_for", Interval),
    always("first_begun_at", time()),
    always("status", Text),
    always("held_by", Uuid),
    always("attempt", Integer),
    always("begun_at", time()),
    always("lease_expires_at", time()),
    maybe("result", JSONB),
    maybe("error", JSONB),
    maybe("evidence", JSONB),
    maybe("finished_at", time()),
    PrimaryKeyConstraint("tenant_id", "effect_uid", name="effects_pkey"),
    _of_the_users_run("effects_run_is_the_users"),
    ForeignKeyConstraint(
        ["tenant_id", "held_by"], ["durable.runs.tenant_id", "durable.runs.run_uid"], name="effects_holder_is_a_run"
    ),
    *_one_key("run", "tenant_id", "run_uid", "step", "tool", "args_digest", "ordinal"),
    *_one_key("user", "tenant_id", "user_id", "app_name", "intent"),
    *_one_key("tenant", "tenant_id", "app_name", "intent"),
    Index("effects_of_a_user", "tenant_id", "user_id", "effect_uid"),
    Index(
        "effects_open",
        *("tenant_id", "held_by"),
        postgresql_where=text("status = any (array['begun'::text, 'unverified'::text])"),
    ),
)

effect_calls = Table(
    "effect_calls",
    metadata,
    always("tenant_id", Text),
    always("run_uid", Uuid),
    always("attempt", Integer),
    always("effect_uid", Uuid),
    always("user_id", Text),
    always("called_at", time()),
    PrimaryKeyConstraint("tenant_id", "run_uid", "attempt", "effect_uid", name="effect_calls_pkey"),
    _of_the_users_run("effect_calls_run_is_the_users"),
    ForeignKeyConstraint(
        ["tenant_id", "effect_uid"],
        ["durable.effects.tenant_id", "durable.effects.effect_uid"],
        name="effect_calls_effect_exists",
    ),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    always("tenant_id", Text),
    always("run_uid", Uuid),
    always("step", Integer),
    maybe("previous_step", Integer),
    always("user_id", Text),
    always("attempt", Integer),
    always("schema_version", Integer),
    always("event_seq", Integer),
    always("state", JSONB),
    always("digest", LargeBinary),
    always("created_at", time()),
    PrimaryKeyConstraint("tenant_id", "run_uid", "step", name="checkpoints_pkey"),
    _of_the_users_run("checkpoints_run_is_the_users"),
    ForeignKeyConstraint(
        ["tenant_id", "run_uid", "previous_step"],
        ["durable.checkpoints.tenant_id", "durable.checkpoints.run_uid", "durable.checkpoints.step"],
        name="checkpoints_step_before_exists",
    ),
)

tools = Table(
    "tools",
    metadata,
    always("tenant_id", Text),
    always("app_name", Text),
    always("tool", Text),
    always("replay_class", Text),
    always("updated_at", time()),
    PrimaryKeyConstraint("tenant_id", "app_name", "tool", name="tools_pkey"),
)
