"""What can go wrong before, in and after a migration.

Where the client has an error of the same name, the one here is both: whoever catches either has it.
"""

from __future__ import annotations

from durable_pg import command_errors, errors
from durable_pg.command_errors import CommandError


class MigrationError(CommandError):
    """A migration could not be done. Nothing of the failed revision is left in the database."""


class BadRequest(MigrationError, command_errors.BadRequest):
    """What was asked for makes no sense: an unknown revision, a wrong direction, an autocommit connection."""


class LoginIsRuntime(BadRequest, errors.LoginIsRuntime):
    """A login that holds a front role was to migrate, or to read what only the migration login and an auditor may."""


class DatabaseUnfit(MigrationError):
    """The database is not in UTF8. Nothing was made in it."""


class DbaMustAct(MigrationError):
    """This login lacks a right. `statements` are the SQL statements that a DBA has to run in this database."""

    exit_code = 3


class LoginRefused(DbaMustAct):
    """A login can't be given the front role: it would be more, or reach more, than that role."""


class WaitTimedOut(MigrationError):
    """Another migration, or a lock on a table, was in the way for longer than allowed."""

    exit_code = 4


class DatabaseIsNewer(MigrationError):
    """The database is at a revision which this package doesn't know."""

    exit_code = 5


class CannotConnect(MigrationError, errors.CannotConnect):
    """No connection to the server could be had."""

    exit_code = 6


class RowsExist(MigrationError, errors.RowsExist):
    """A downgrade would drop tables that hold rows."""

    exit_code = 7


def statements_of(detail: str) -> tuple[str, ...]:
    """The statements that roles.sql puts into DETAIL, one a line."""
    return tuple(line for line in detail.splitlines() if line.strip())
