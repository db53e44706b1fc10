"""The connection of the commands that show the record, and as whom they read it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import Connection

from durable_pg.cli.output import reporting
from durable_pg.cli.read import View, open_view
from durable_pg.cli.show.terminal import shown
from durable_pg.command_errors import CommandError
from durable_pg.migrate.connection import connect


class Reader:
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
def reading(
    url: str | None,
    json: bool,
    tenant: str | None,
    user: str | None,
    acts_as: str | None,
    *,
    interrupted: str = "nothing was written",
) -> Iterator[Reader]:
    """Connect; turn what goes wrong into a message and an exit code, and quoted names into what is safe to show."""
    with reporting(json, interrupted):
        try:
            with connect(url, pooled=True) as connection:
                yield Reader(connection, tenant, user, acts_as)
        except CommandError as error:
            error.message, error.hint = shown(error.message), shown(error.hint)
            error.detail = shown(error.detail, newlines="\n")
            raise
