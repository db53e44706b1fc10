"""The roles as the tests name them, and what each may read and write."""

from contextlib import AbstractContextManager

from tests.support.harness import Connection, Database

FRONT = ("app", "operator", "maintainer", "auditor")
BACK = ("engine", "steward", "janitor")
# Tables whose rows belong to one user, and that the app may read.
PERSONAL = ("user_states", "sessions", "events", "runs", "effects", "effect_calls", "checkpoints")
# Tables whose rows belong to a tenant, and that its app may read.
SHARED = ("app_states", "tools")
DATA = (*SHARED, *PERSONAL, "audit_log")
APPEND_ONLY = ("events", "effect_calls", "checkpoints", "audit_log")
READABLE = {
    "app": (*SHARED, *PERSONAL),
    "engine": ("app_states", *PERSONAL),
    "steward": ("tools", "sessions", "events", "runs", "effects", "effect_calls"),
    "operator": DATA,
    "auditor": DATA,
}
# Who adds and changes rows, audit rows aside: those are in test_audited.
INSERTED = [*(("engine", table) for table in ("app_states", *PERSONAL)), ("steward", "tools")]
UPDATED = [
    *((role, table) for role, table in INSERTED if table not in APPEND_ONLY),
    *(("steward", table) for table in ("sessions", "runs", "effects")),
]


def acting(
    db: Database, role: str, tenant: str | None = "T1", user: str | None = "U1"
) -> AbstractContextManager[Connection]:
    """One transaction of a role by name; the maintainer, the auditor and the janitor act as nobody."""
    if role in {"maintainer", "auditor", "janitor"}:
        tenant = user = None
    block: AbstractContextManager[Connection] = getattr(db, f"as_{role}")(tenant, user)
    return block
