"""How every command ends: results on stdout, errors on stderr without a traceback, one exit code a cause."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from durable_pg.cli.read import to_json
from durable_pg.cli.show.terminal import speaks_utf8, write
from durable_pg.command_errors import CommandError


def emit(as_json: bool, facts: dict[str, Any], text: str) -> None:
    """Print a result: the facts for a machine, or the text for a person."""
    typer.echo(json.dumps(facts, ensure_ascii=False) if as_json else text)


@contextmanager
def reporting(as_json: bool, interrupted: str) -> Iterator[None]:
    """Turn what goes wrong into a message and an exit code."""
    try:
        yield
    except CommandError as error:
        _fail(error, as_json)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        typer.echo(f"interrupted: {interrupted}", err=True)
        raise typer.Exit(130) from None


def _fail(error: CommandError, as_json: bool) -> None:
    if as_json:
        facts = {
            "error": type(error).__name__,
            "message": error.message,
            "detail": error.detail,
            "hint": error.hint,
            "statements": error.statements,
        }
        typer.echo(json.dumps(facts, ensure_ascii=False))
    typer.echo(f"error: {error.message}", err=True)
    for line in error.detail.splitlines():
        typer.echo(f"  {line}", err=True)
    if error.statements and not as_json:
        typer.echo("A DBA must run, in this database:", err=True)
        # Alone on stdout, so that they can be piped into psql.
        for statement in error.statements:
            typer.echo(statement)
    if error.hint:
        typer.echo(f"hint: {error.hint}", err=True)


def print_json(facts: object) -> None:
    """Print one JSON object, complete."""
    write(to_json(facts, ascii_only=not speaks_utf8()) + "\n")
