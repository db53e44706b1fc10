"""Rows for direct inserts: each builder gives one that every constraint accepts."""

from typing import TYPE_CHECKING, Any

from psycopg import sql

from tests.support.harness import Connection

if TYPE_CHECKING:
    from tests.rules.world import Home

LATER = "2999-01-01T00:00:00Z"


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


def user_state_row(home: "Home", **changes: Any) -> dict[str, Any]:
    return {"tenant_id": home.tenant, "user_id": home.user, "app_name": "sales", **changes}


def session_row(home: "Home", **changes: Any) -> dict[str, Any]:
    return {"tenant_id": home.tenant, "user_id": home.user, "app_name": "support", "session_id": "s-9", **changes}


def run_row(home: "Home", **changes: Any) -> dict[str, Any]:
    return {
        "tenant_id": home.tenant,
        "user_id": home.user,
        "session_uid": home.session,
        "invocation_id": "inv-9",
        "generation": 0,
        "trigger": "user",
        "lease_holder": "w-9",
        "lease_expires_at": LATER,
        **changes,
    }


def event_row(home: "Home", **changes: Any) -> dict[str, Any]:
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


def effect_row(home: "Home", **changes: Any) -> dict[str, Any]:
    return {
        "tenant_id": home.tenant,
        "user_id": home.user,
        "app_name": "support",
        "run_uid": home.running,
        "step": 9,
        "ordinal": 0,
        "tool": "refund",
        "scope": "run",
        "intent": None,
        "args": '{"order": 9}',
        "args_digest": b"9" * 32,
        "failures": 0,
        "idempotency_key": "dpg_9",
        "provider_dedupes_for": None,
        "first_begun_at": "2026-01-01T00:00:00Z",
        "held_by": home.running,
        "attempt": 1,
        "begun_at": "2026-01-01T00:00:00Z",
        "lease_expires_at": LATER,
        **changes,
    }


def effect_call_row(home: "Home", **changes: Any) -> dict[str, Any]:
    return {
        "tenant_id": home.tenant,
        "user_id": home.user,
        "run_uid": home.running,
        "attempt": 9,
        "effect_uid": home.begun,
        **changes,
    }


def checkpoint_row(home: "Home", **changes: Any) -> dict[str, Any]:
    return {
        "tenant_id": home.tenant,
        "user_id": home.user,
        "run_uid": home.running,
        "step": 2,
        "previous_step": 1,
        "attempt": 1,
        "schema_version": 1,
        "event_seq": 6,
        "state": '{"todo": []}',
        "digest": b"0" * 32,
        **changes,
    }


def tool_row(tenant: str, **changes: Any) -> dict[str, Any]:
    return {"tenant_id": tenant, "app_name": "sales", "tool": "mail", "replay_class": "effect", **changes}


def audit_row(tenant: str, **changes: Any) -> dict[str, Any]:
    return {
        "tenant_id": tenant,
        "acted_by": "on-call",
        "action": "resolve_effect",
        "subject_kind": "effect",
        "reason": "asked by phone",
        **changes,
    }


def row_of(table: str, home: "Home") -> dict[str, Any]:
    """Return a new row of this person, or of the person's tenant where a table knows no persons."""
    if table == "app_states":
        return app_state_row(home.tenant)
    if table == "tools":
        return tool_row(home.tenant)
    builders = {
        "user_states": user_state_row,
        "sessions": session_row,
        "events": event_row,
        "runs": run_row,
        "effects": effect_row,
        "effect_calls": effect_call_row,
        "checkpoints": checkpoint_row,
    }
    return builders[table](home)
