"""What ends a command: a message for a person, what to do about it, and the exit code of durable-pg."""

from __future__ import annotations

from typing import Any


class CommandError(Exception):
    """A command could not do what was asked; `exit_code` is what durable-pg ends with.

    `statements`: SQL that a DBA has to run first, if that is what is missing.
    """

    exit_code: int = 1

    def __init__(self, message: str, *, detail: str = "", hint: str = "", statements: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.statements = statements

    def __str__(self) -> str:
        lines = [self.message, *(f"    {statement}" for statement in self.statements)]
        if self.detail:
            lines.append(self.detail)
        if self.hint:
            lines.append(f"Hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions cross process boundaries in worker pools, and subclasses take other arguments.
        return type(self).__new__, (type(self), self.message), self.__dict__


class BadRequest(CommandError):
    """What was asked for makes no sense."""

    exit_code = 2
