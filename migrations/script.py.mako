"""${message}"""

from pathlib import Path

from alembic import op

from durable_pg.migrate import frozen

revision = "${up_revision}"
down_revision = ${f'"{down_revision}"' if down_revision else "None"}

HERE = Path(__file__).parent


def upgrade() -> None:
    frozen.run(op.get_context(), HERE, "${stem}.sql")


def downgrade() -> None:
    frozen.run(op.get_context(), HERE, "${stem}.down.sql")
