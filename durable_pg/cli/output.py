"""How every command ends: results on stdout, errors on stderr without a traceback, one exit code a cause."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from durable_pg._migration.errors import DbaMustAct, MigrationError
from durable_pg.server import ServerError

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="Database, such as postgresql://migrator@db/shop. "
        "Without it: DURABLE_PG_URL, then DATABASE_URL, then libpq's PG* variables.",
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object for machines, errors included (but not those of a wrong command line)."
    ),
]


def emit(as_json: bool, facts: dict[str, Any], text: str) -> None:
    """Print a result: the facts for a machine, or the text for a person."""
    typer.echo(json.dumps(facts, ensure_ascii=False) if as_json else text)


@contextmanager
def reporting(as_json: bool, interrupted: str) -> Iterator[None]:
    """Turn what goes wrong into a message and an exit code."""
    try:
        yield
    except (MigrationError, ServerError) as error:
        _fail(error, as_json)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        typer.echo(f"interrupted: {interrupted}", err=True)
        raise typer.Exit(130) from None


def _fail(error: MigrationError | ServerError, as_json: bool) -> None:
    statements = list(error.statements) if isinstance(error, DbaMustAct) else []
    if as_json:
        facts = {
            "error": type(error).__name__,
            "message": error.message,
            "detail": error.detail,
            "hint": error.hint,
            "statements": statements,
        }
        typer.echo(json.dumps(facts, ensure_ascii=False))
    typer.echo(f"error: {error.message}", err=True)
    for line in error.detail.splitlines():
        typer.echo(f"  {line}", err=True)
    if statements and not as_json:
        typer.echo("A DBA must run, in this database:", err=True)
        # Alone on stdout, so that they can be piped into psql.
        for statement in statements:
            typer.echo(statement)
    if error.hint:
        typer.echo(f"hint: {error.hint}", err=True)
