"""Options and connection of the commands that show the record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from durable_pg._migration.connecting import connect
from durable_pg._migration.errors import BadRequest, MigrationError
from durable_pg.cli._terminal import shown, speaks_utf8, write
from durable_pg.cli.output import reporting
from durable_pg.inspection import View, open_view, to_json

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


class Looking:
    """Opens transactions in which the record can be read, all of them as the same somebody."""

    def __init__(self, connection: Connection, tenant: str | None, user: str | None, acts_as: str | None) -> None:
        self.connection = connection
        self._who: dict[str, str | None] = {"tenant": tenant, "user": user, "acts_as": acts_as}

    @contextmanager
    def begin(self, *, writes: bool = False) -> Iterator[View]:
        """Begin a transaction of its own, so that no migration waits for a long look."""
        with self.connection.begin():
            yield open_view(self.connection, **self._who, writes=writes)


@contextmanager
def looking(
    url: str | None,
    json: bool,
    tenant: str | None,
    user: str | None,
    acts_as: str | None,
    *,
    interrupted: str = "nothing was written",
) -> Iterator[Looking]:
    """Connect; turn what goes wrong into a message and an exit code, and quoted names into what is safe to show."""
    with reporting(json, interrupted):
        try:
            with connect(url, pooled=True) as connection:
                yield Looking(connection, tenant, user, acts_as)
        except MigrationError as error:
            error.message, error.hint = shown(error.message), shown(error.hint)
            error.detail = shown(error.detail, newlines="\n")
            raise


def print_json(facts: object) -> None:
    """Print one JSON object, complete."""
    write(to_json(facts, ascii_only=not speaks_utf8()) + "\n")


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
