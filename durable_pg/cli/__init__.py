"""The command line durable-pg. Each command is a thin layer over a function that Python can call as well."""

from __future__ import annotations

from typing import Annotated

import typer

from durable_pg import __version__, migrate
from durable_pg.cli import demo, effects, local, migrations, runs, sessions, tools

app = typer.Typer(
    name="durable-pg",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Postgres keeps the record of your agent runs, and keeps it straight.\n\n"
    "The database is --url, else DURABLE_PG_URL, else DATABASE_URL, else libpq's PGHOST, PGUSER, PGDATABASE.\n\n"
    "Exit codes: 0 done; 1 failed, or check or sessions verify found something; 2 wrong usage, or a login that must "
    "not do this; 3 a DBA must act (the statements are on stdout, if any); 4 waited too long for a lock; 5 the "
    "database is newer than this package; 6 can't connect; 7 refused, rows would be lost; 130 interrupted, "
    "nothing half done.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"durable-pg {__version__}, schema {migrate.head()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[  # typer reads it, and the callback answers
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that belong to no command."""


app.command()(local.up)
app.command()(local.down)
app.command(context_settings={"ignore_unknown_options": True})(local.psql)
app.command()(migrations.upgrade)
app.command()(migrations.downgrade)
app.command()(migrations.current)
app.command()(migrations.sql)
app.command()(migrations.check)
app.command()(demo.demo)
app.add_typer(runs.app)
app.add_typer(sessions.app)
app.add_typer(effects.app)
app.add_typer(tools.app)
