"""For Alembic's own command line. durable-pg upgrade needs none of it, and does the same.

The connection is config.attributes["connection"], else the URL of `alembic -x url=...`, else the environment's.
"""

from alembic import context
from alembic.util import CommandError

from durable_pg.migrate import MigrationError, run_for_alembic

if context.is_offline_mode():
    raise CommandError("the offline script is made by: durable-pg sql FROM:TO")

target = context.config.attributes.get("connection") or context.get_x_argument(as_dictionary=True).get("url")
# The steps of the command that runs this: alembic has no public name for them.
steps = context._proxy.context_opts["fn"]  # type: ignore[attr-defined]  # noqa: SLF001
try:
    run_for_alembic(target, steps)
except MigrationError as error:
    raise CommandError(str(error)) from error
