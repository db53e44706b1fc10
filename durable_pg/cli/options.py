"""Options that several commands take, and what they mean."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Annotated

import typer

from durable_pg.command_errors import BadRequest

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="Database, such as postgresql://migrator@db/shop. "
        "Without it: DURABLE_PG_URL, then DATABASE_URL, then libpq's PG* variables.",
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object for machines, errors included (but not those of a wrong command line)."
    ),
]
Tenant = Annotated[
    str | None,
    typer.Option(
        "--tenant",
        metavar="NAME",
        envvar="DURABLE_PG_TENANT",
        help="Whose data: the tenant. An application's login and an operator need it; for an auditor it is a filter.",
    ),
]
User = Annotated[
    str | None,
    typer.Option(
        "--user",
        metavar="NAME",
        envvar="DURABLE_PG_USER",
        help="Whose data: the user. An application's login needs it; for an operator and an auditor it is a filter.",
    ),
]
As = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="NAME",
        help="Who looks, for an operator. Without it: the name of the operating system's user.",
    ),
]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=100_000, help="Not more than so many.")]
Full = Annotated[bool, typer.Option("--full", help="Print contents whole, and metadata.")]

_SINCE = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}


def as_moment(given: str, now: datetime) -> datetime:
    """Understand 90s, 30m, 2h, 7d, 1w, or an ISO 8601 time, in UTC unless it says otherwise."""
    span = _SINCE.fullmatch(given.strip().lower())
    try:
        if span:
            return now - timedelta(seconds=float(span[1]) * _SECONDS[span[2]])
        # Python before 3.11 does not know the Z.
        moment = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", given.strip()))
    except (ValueError, OverflowError):
        raise BadRequest(
            f"--since {given} is no time", hint="Write 90s, 30m, 2h, 7d, or a time such as 2026-01-31T22:15 (UTC)."
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
