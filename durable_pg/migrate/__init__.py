"""Brings schema `durable` to a revision, tells where it is, and writes the same as a script for psql.

from durable_pg import migrate

migrate.upgrade("postgresql://migrator@db/shop")   # a job of its own
migrate.upgrade(op.get_bind())                     # inside a revision of your own Alembic chain
"""

from durable_pg.migrate.errors import (
    BadRequest,
    CannotConnect,
    DatabaseIsNewer,
    DatabaseUnfit,
    DbaMustAct,
    LoginIsRuntime,
    LoginRefused,
    MigrationError,
    RowsExist,
    WaitTimedOut,
)
from durable_pg.migrate.migration import (
    Report,
    current,
    downgrade,
    head,
    is_downward,
    is_installed,
    offline_sql,
    require_known,
    run_for_alembic,
    upgrade,
)

__all__ = [
    "BadRequest",
    "CannotConnect",
    "DatabaseIsNewer",
    "DatabaseUnfit",
    "DbaMustAct",
    "LoginIsRuntime",
    "LoginRefused",
    "MigrationError",
    "Report",
    "RowsExist",
    "WaitTimedOut",
    "current",
    "downgrade",
    "head",
    "is_downward",
    "is_installed",
    "offline_sql",
    "require_known",
    "run_for_alembic",
    "upgrade",
]
