"""What can go wrong before, in and after a migration. Each class has the exit code that durable-pg ends with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class MigrationError(Exception):
    """A migration could not be done. Nothing of the failed revision is left in the database."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, detail: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        parts = [self.message]
        if self.detail:
            parts.append(self.detail)
        if self.hint:
            parts.append(f"Hint: {self.hint}")
        return "\n".join(parts)


class BadRequest(MigrationError):
    """What was asked for makes no sense: an unknown revision, a wrong direction, an autocommit connection."""

    exit_code = 2


class LoginIsRuntime(BadRequest):
    """A login that holds a front role was to migrate, or to read what only the migration login and an auditor may."""


class DatabaseUnfit(MigrationError):
    """The database is not in UTF8. Nothing was made in it."""


class DbaMustAct(MigrationError):
    """This login lacks a right. `statements` are the SQL statements that a DBA has to run in this database."""

    exit_code = 3

    def __init__(self, message: str, *, statements: Sequence[str], hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.statements = tuple(statements)

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"    {statement}" for statement in self.statements)]) + (
            f"\nHint: {self.hint}" if self.hint else ""
        )


class LoginRefused(DbaMustAct):
    """A login can't be given the front role: it would be more, or reach more, than that role."""


class WaitTimedOut(MigrationError):
    """Another migration, or a lock on a table, was in the way for longer than allowed."""

    exit_code = 4


class DatabaseIsNewer(MigrationError):
    """The database is at a revision which this package doesn't know."""

    exit_code = 5


class CannotConnect(MigrationError):
    exit_code = 6


class RowsExist(MigrationError):
    """A downgrade would drop tables that hold rows."""

    exit_code = 7


def statements_of(detail: str) -> tuple[str, ...]:
    """The statements that roles.sql puts into DETAIL, one a line."""
    return tuple(line for line in detail.splitlines() if line.strip())
