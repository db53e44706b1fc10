"""Baseline."""

from pathlib import Path

from alembic import op

from durable_pg.migrate import frozen

revision = "0001"
down_revision = None

HERE = Path(__file__).parent


def upgrade() -> None:
    frozen.run(op.get_context(), HERE, "0001_baseline.sql")


def downgrade() -> None:
    frozen.run(op.get_context(), HERE, "0001_baseline.down.sql")
