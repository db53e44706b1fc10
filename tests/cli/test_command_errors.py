"""What ends a command is one kind of error, whoever raises it."""

import pickle

import pytest

from durable_pg import errors, migrate
from durable_pg._embedded.errors import NoEmbeddedServer, ServerError
from durable_pg.cli import read
from durable_pg.command_errors import CommandError


@pytest.mark.parametrize("name", ["CannotConnect", "LoginIsRuntime", "RowsExist"])
def test_what_ends_a_migration_and_a_call_alike_is_caught_as_either(name: str) -> None:
    error = getattr(migrate, name)("why", hint="what to do")
    assert isinstance(error, getattr(errors, name))
    assert isinstance(error, migrate.MigrationError)
    assert str(error) == "why\nHint: what to do"


def test_that_there_is_no_such_run_is_no_error_of_a_migration() -> None:
    assert issubclass(read.NotFound, CommandError)
    assert not issubclass(read.NotFound, migrate.MigrationError)


@pytest.mark.parametrize(
    "error",
    [
        migrate.DbaMustAct("why", statements=("grant a to b;",), hint="what to do"),
        migrate.CannotConnect("why", detail="where"),
        ServerError("why", detail="where", exit_code=6),
        NoEmbeddedServer(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_it_crosses_a_process_boundary_whole(error: CommandError) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own
    assert type(again) is type(error)
    assert (str(again), again.exit_code) == (str(error), error.exit_code)
    assert again.args == error.args
