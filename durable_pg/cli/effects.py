"""effects list, effects resolve."""

from __future__ import annotations

import json as json_
from typing import Annotated

import typer

from durable_pg.cli import read
from durable_pg.cli.options import As, AsJson, Limit, Tenant, Url, User
from durable_pg.cli.output import print_json
from durable_pg.cli.read import EffectDetails, View
from durable_pg.cli.reader import reading
from durable_pg.cli.show.tables import print_effects
from durable_pg.cli.show.terminal import Page, shown
from durable_pg.command_errors import BadRequest

app = typer.Typer(
    name="effects",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Look at outside effects, and say what became of those that nobody knows about.\n\n"
    "An effect is unverified when the worker that began it died, lost its answer or raised: it may have happened, so "
    "nobody executes it again until somebody has looked.\n\n"
    "Example: durable-pg effects list --tenant acme --status unverified",
)


@app.command("list")
def list_(  # noqa: PLR0917  # typer reads options from parameters
    url: Url = None,
    tenant: Tenant = None,
    user: User = None,
    acts_as: As = None,
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Of one status: begun, succeeded, failed or unverified.")
    ] = None,
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="Of one tool.")] = None,
    run: Annotated[
        str | None, typer.Option(metavar="RUN_UID", help="Begun first by this run: its uid, or the beginning of it.")
    ] = None,
    limit: Limit = 50,
    json: AsJson = False,
) -> None:
    """List effects, the newest first.

    STATUS is what holds now: one that was begun and whose lease is over is unverified. --json has everything of each:
    arguments, the idempotency key that its provider was given, result, error and evidence.

    Example: durable-pg effects list --tenant acme --status unverified
    """
    with reading(url, json, tenant, user, acts_as) as look, look.begin() as view:
        its = read.find_run(look.connection, run, tenant=view.tenant, user=view.user) if run is not None else None
        found = read.list_effects(
            look.connection,
            tenant=its.tenant_id if its else view.tenant,
            # What another user of the tenant did under an intent of the tenant is among an app's own.
            user=None if view.role == "app" else view.user,
            run=its.run_uid if its else None,
            tool=tool,
            status=status,
            limit=limit + 1,
        )
        more, found = len(found) > limit, found[:limit]
        if json:
            print_json({"effects": found, "more": more})
            return
        if not found:
            typer.echo(_nothing(view, any(given is not None for given in (status, tool, run))), err=True)
            return
        page = Page()
        print_effects(page, found, view, read.now(look.connection))
        page.print()
        if more:
            typer.echo(f"These are the newest {limit}; there are more: --limit, --status, --tool.", err=True)


@app.command()
def resolve(  # noqa: PLR0917
    effect_uid: Annotated[
        str, typer.Argument(metavar="EFFECT_UID", help="The effect's uid, or its beginning (8 characters or more).")
    ],
    channel: Annotated[
        str, typer.Option(metavar="TEXT", help="Where you looked, such as the provider's dashboard or a phone call.")
    ],
    seen: Annotated[str, typer.Option(metavar="TEXT", help="What you saw there.")],
    succeeded: Annotated[
        bool | None, typer.Option("--succeeded/--failed", help="Whether it happened, or certainly did not.")
    ] = None,
    result: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="What the tool would have returned: whoever asks again is given this."),
    ] = None,
    who: Annotated[str | None, typer.Option(metavar="NAME", help="Who looked, if it was not you.")] = None,
    url: Url = None,
    tenant: Tenant = None,
    user: User = None,
    acts_as: As = None,
    json: AsJson = False,
) -> None:
    """Say what became of an unverified effect, and how you know.

    One that succeeded is never executed again, and its run goes on with the result. One that failed may be executed
    again, under another idempotency key: say so only if it can't happen any more either. Leaves an audit row with your
    login, --as, and the evidence. An outcome that is recorded stays.

    Example: durable-pg effects resolve 01a22893-1313 --tenant acme --failed --channel Stripe --seen "no refund of 7"
    """
    interrupted = "look with effects list before you resolve it again"
    with reading(url, json, tenant, user, acts_as, interrupted=interrupted) as look, look.begin(writes=True) as view:
        if succeeded is None:
            raise BadRequest("--succeeded or --failed is missing", hint="If you can't tell, leave it unverified.")
        _check_json(result)
        effect = read.find_effect(
            look.connection, effect_uid, tenant=view.tenant, user=None if view.role == "app" else view.user
        )
        evidence = {"channel": channel, "seen": seen, **({"who": who} if who is not None else {})}
        status = "succeeded" if succeeded else "failed"
        resolved, outcome = read.resolve_effect(look.connection, view, effect, status, evidence=evidence, result=result)
    # Committed.
    if json:
        print_json({"effect": resolved, "outcome": outcome})
    else:
        typer.echo(_resolved(resolved, outcome))


def _check_json(result: str | None) -> None:
    try:
        json_.loads(result if result is not None else "null")
    except ValueError:
        raise BadRequest("--result is no JSON", hint="""Write '{"id": "re_7"}', '"text"' or 7.""") from None


def _resolved(effect: EffectDetails, outcome: str) -> str:
    already = " already" if outcome == "already_resolved" else ""
    line = f"{effect.tool} {effect.effect_uid} has{already} {effect.status}."
    if effect.status == "succeeded":
        known = "its result" if effect.result is not None else "null, since no --result was given"
        return shown(f"{line} Whoever asks for it again is given {known}.")
    return shown(f"{line} It is executed again when run {effect.run_uid}, or another one, asks for it.")


def _nothing(view: View, narrowed: bool) -> str:
    whose = [f"{kind} {name}" for kind, name in (("tenant", view.tenant), ("user", view.user)) if name is not None]
    of = f" of {', '.join(whose)}" if whose else ""
    hint = "try fewer options, or another --tenant or --user." if narrowed else "begin_effect makes the first one."
    return shown(f"No effects{of}{' fit' if narrowed else ''}: {hint}")
