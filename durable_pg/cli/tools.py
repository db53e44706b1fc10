"""tools list, tools sync."""

from __future__ import annotations

import importlib
import sys
from typing import Annotated

import typer

from durable_pg.cli import read
from durable_pg.cli.options import As, AsJson, Limit, Tenant, Url, User
from durable_pg.cli.output import print_json, reporting
from durable_pg.cli.reader import reading
from durable_pg.cli.show.tables import print_tools
from durable_pg.cli.show.terminal import Page, shown
from durable_pg.command_errors import BadRequest

app = typer.Typer(
    name="tools",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="What an app's tools are like: whether a call may be made again.\n\n"
    "read_only: nothing happens outside. keyed: the provider recognises a repeat by its key. effect: a repeat may do "
    "it twice; so is every tool that is not listed. replay_verdict goes by it.\n\n"
    "Example: durable-pg tools sync shop.tools --app support --tenant acme",
)


@app.command("list")
def list_(  # noqa: PLR0917  # typer reads options from parameters
    url: Url = None,
    tenant: Tenant = None,
    user: User = None,
    acts_as: As = None,
    app_name: Annotated[str | None, typer.Option("--app", metavar="NAME", help="Of one app.")] = None,
    limit: Limit = 1000,
    json: AsJson = False,
) -> None:
    """List what is stored of tools. A tool that is not listed counts as an effect.

    Example: durable-pg tools list --tenant acme --app support
    """
    with reading(url, json, tenant, user, acts_as) as look, look.begin() as view:
        found = read.list_tools(look.connection, tenant=view.tenant, app=app_name, limit=limit + 1)
        more, found = len(found) > limit, found[:limit]
        if json:
            print_json({"tools": found, "more": more})
            return
        if not found:
            typer.echo("No tools are stored: each one counts as an effect. tools sync stores some.", err=True)
            return
        page = Page()
        print_tools(page, found, view, read.now(look.connection))
        page.print()
        if more:
            typer.echo(f"These are {limit}; there are more: --limit, --app.", err=True)


@app.command()
def sync(  # noqa: PLR0917
    module: Annotated[
        str, typer.Argument(metavar="MODULE", help="The Python module with the tools, such as shop.tools; imported.")
    ],
    app_name: Annotated[str, typer.Option("--app", metavar="NAME", help="The app whose tools they are.")],
    url: Url = None,
    tenant: Tenant = None,
    user: User = None,
    acts_as: As = None,
    json: AsJson = False,
) -> None:
    """Store what the @durable_tool decorators of a module declare, as an operator.

    Where what is stored is stricter it is kept: a deployment can't loosen what somebody has tightened. Run it when you
    deploy; a second time it changes nothing. The module is looked for from the current directory, too.

    Example: durable-pg tools sync shop.tools --app support --tenant acme
    """
    with reporting(json, "nothing was written"):
        declared = _declared(module)
    interrupted = "look with tools list"
    with reading(url, json, tenant, user, acts_as, interrupted=interrupted) as look:
        with look.begin(writes=True) as view:
            written = read.declare_tools(look.connection, view, app_name, declared)
            now = read.now(look.connection)
        # Committed.
        if json:
            print_json({"tools": written})
            return
        page = Page()
        print_tools(page, written, view, now)
        page.print()
    for tool in written:
        if tool.outcome == "kept":
            typer.echo(
                shown(f"{tool.tool} stays {tool.replay_class}, stricter than {declared[tool.tool]}; set_tool loosens."),
                err=True,
            )


def _declared(module: str) -> dict[str, str]:
    # As python -m does; the console script has only its own folder.
    if "" not in sys.path:
        sys.path.insert(0, "")
    # It brings the whole client along, which no other command needs.
    from durable_pg.tools import declarations  # noqa: PLC0415

    try:
        found = declarations(importlib.import_module(module))
    except ValueError as error:
        raise BadRequest(str(error)) from None
    except Exception as error:
        raise BadRequest(
            f"module {module} can't be imported: {type(error).__name__}: {error}",
            hint="Run it where your program runs, in its environment, or set PYTHONPATH.",
        ) from error
    if not found:
        raise BadRequest(f"module {module} has no tools", hint="Decorate functions with @durable_tool(...).")
    return dict(found)
