"""up, down, psql: a server for development that stays up."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from durable_pg._embedded import local
from durable_pg._embedded.errors import ServerError
from durable_pg.cli.options import AsJson
from durable_pg.cli.output import emit, reporting

Directory = Annotated[
    Path | None,
    typer.Option(
        "--directory",
        metavar="DIR",
        envvar="DURABLE_PG_HOME",
        help="Where the server and its data are. Without it: durable-pg in XDG_DATA_HOME or ~/.local/share; for root "
        "/var/lib/durable-pg. Each directory is a server of its own.",
    ),
]


class Login(str, Enum):
    """The logins that up makes."""

    app = "app"
    operator = "operator"
    maintainer = "maintainer"
    auditor = "auditor"
    mig = "mig"


def up(
    directory: Directory = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1024,
            max=65535,
            help="Where to listen on 127.0.0.1. Without it: where it did before; the first time, a free port.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Start a Postgres for development that stays up, with durable_pg in it and a login for each role.

    Needs no Postgres (extra "embedded"). Makes the database and five logins the first time: mig, which migrates and is
    no superuser, and app, operator, maintainer and auditor, each with its front role. Prints a URL for each. Run it
    again at any time: it starts what is down, migrates what is older, and prints the same URLs. Data survive down.

    It listens on 127.0.0.1 only. Each login has a random password, kept in a file that only you can read; the superuser
    gets in by a socket in a directory that only you can enter. As root the server runs as the system user pgserver,
    which is made if it is not there.
    """
    with reporting(json, "no server was left behind that was not up before; durable-pg up goes on from here"):
        server = local.up(directory or local.default_directory(), port=port, tell=_teller())
        emit(json, _facts(server), _text(server))


def down(
    directory: Directory = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Delete the database too, with everything recorded in it. Asks first.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --remove: don't ask.")] = False,
    json: AsJson = False,
) -> None:
    """Stop the server that up has started. Its data stay, and up brings them back.

    Says so when it is not up. --remove deletes only what up has made: a directory of anybody else's is refused, and
    files that somebody put beside the data stay.
    """
    with reporting(json, "run durable-pg down again to see to the rest"):
        where = directory or local.default_directory()
        if remove and not yes and local.is_made(where):
            _ask(where, json=json)
        ended = local.down(where, remove=remove, tell=_teller())
        facts = {"directory": str(where.resolve()), "stopped": ended.was_up, "removed": ended.removed}
        what = "stopped" if ended.was_up else "is not up"
        removed = ", and its data are removed" if ended.removed else ""
        nothing = "; there is nothing to remove" if remove and not ended.removed else ""
        emit(json, facts, f"the server in {where.resolve()} {what}{removed}{nothing}")


def psql(
    arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGUMENTS", help="What psql is given.")] = None,
    login: Annotated[Login, typer.Option("--as", help="Which login to be.", case_sensitive=False)] = Login.app,
    directory: Directory = None,
) -> None:
    """Open psql in the server that up has started, as one of its logins.

    As app and as operator a transaction starts with who it acts for; without that every read and write is refused:

    begin; select durable.act_as('tenant', 'user');

    An auditor needs no such call. Arguments of psql come after --, such as:

    durable-pg psql --as auditor -- -c 'select * from durable.runs'

    Exits with psql's own code, or with 6 when the server is not up. The password goes by the environment, never by the
    command line.
    """
    with reporting(False, "psql was not started"):
        program, command, environment = local.psql(directory or local.default_directory(), login.value, arguments or [])
        sys.stdout.flush()
        os.execvpe(program, command, environment)  # noqa: S606  # psql takes this process's place


def _teller() -> Callable[[str], None]:
    return lambda step: typer.echo(f"{step} ...", err=True)


def _ask(directory: Path, *, json: bool) -> None:
    """Go on only if a person says yes; never wait for one who is not there."""
    if json or not sys.stdin.isatty():
        raise ServerError("--remove deletes data: nobody can be asked here", hint="Give --yes as well.", exit_code=2)
    if not typer.confirm(f"Delete the database in {directory.resolve()} and everything recorded in it?", err=True):
        typer.echo("nothing was stopped or removed", err=True)
        raise typer.Exit(1)


def _facts(server: local.LocalServer) -> dict[str, object]:
    return {
        "directory": str(server.directory),
        "started": server.started,
        "pid": server.pid,
        "port": server.port,
        "postgres": server.postgres,
        "before": server.report.before,
        "after": server.report.after,
        "urls": dict(server.urls),
    }


def _text(server: local.LocalServer) -> str:
    report = server.report
    schema = f"went from {report.before or 'base'} to {report.after}" if report.steps else f"at {report.after}"
    width = max(len(login) for login in server.urls)
    return "\n".join(
        (
            f"Postgres {server.postgres} {'is up' if server.started else 'was up already'} in {server.directory}",
            f"Schema durable {schema}",
            "",
            *(f"{login:<{width}}  {url}" for login, url in server.urls.items()),
            "",
            "For your application:",
            f"export DURABLE_PG_URL={server.urls['app']}",
        )
    )
