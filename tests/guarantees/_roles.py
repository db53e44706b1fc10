"""The roles as the tests name them, and what each may read."""

from contextlib import AbstractContextManager

from tests.harness import Connection, Database

FRONT = ("app", "operator", "maintainer", "auditor")
BACK = ("engine", "steward", "janitor")
DATA = ("app_states", "user_states", "sessions", "events", "runs", "audit_log")
# Tables whose rows belong to one user, and that the app may read.
PERSONAL = ("user_states", "sessions", "events", "runs")
READABLE = {
    "app": ("app_states", *PERSONAL),
    "engine": ("app_states", *PERSONAL),
    "operator": DATA,
    "auditor": DATA,
}


def acting(
    db: Database, role: str, tenant: str | None = "T1", user: str | None = "U1"
) -> AbstractContextManager[Connection]:
    """One transaction of a role by name; the maintainer, the auditor and the janitor act as nobody."""
    if role in {"maintainer", "auditor", "janitor"}:
        tenant = user = None
    block: AbstractContextManager[Connection] = getattr(db, f"as_{role}")(tenant, user)
    return block
