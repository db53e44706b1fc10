"""Most tests run the command line within their own process: these show that it answers as a process does."""

import os

import pytest

from tests.support.cli import durable_pg, durable_pg_process
from tests.support.harness import Database

UNREACHABLE = "postgresql://mig@127.0.0.1:1/x"


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("--help",),
        ("runs", "list", "--help"),
        ("--version",),
        ("runs", "lst"),
        ("runs", "show", "not-a-uid", "--url", UNREACHABLE),
        ("current", "--url", UNREACHABLE),
        ("current", "--url", UNREACHABLE, "--json"),
        ("check", "--url", "mysql://db/shop"),
        ("sql",),
    ],
    ids=" ".join,
)
def test_a_command_answers_in_process_as_in_a_process_of_its_own(command: tuple[str, ...]) -> None:
    inside, outside = durable_pg(*command), durable_pg_process(*command)
    assert (inside.returncode, inside.stdout, inside.stderr) == (outside.returncode, outside.stdout, outside.stderr)


@pytest.mark.parametrize("command", ["current", "runs list", "sessions list", "effects list", "tools list"])
def test_a_command_on_a_database_does_so_too(module_db: Database, command: str) -> None:
    words = (*command.split(), "--url", module_db.url("auditor"))
    inside, outside = durable_pg(*words), durable_pg_process(*words)
    assert (inside.returncode, inside.stdout, inside.stderr) == (outside.returncode, outside.stdout, outside.stderr)


def test_the_environment_is_as_before_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", UNREACHABLE)
    done = durable_pg("current", extra={"DURABLE_PG_URL": "mysql://db/shop"})
    assert (done.returncode, "DURABLE_PG_URL" in os.environ) == (2, False)
    assert os.environ["DATABASE_URL"] == UNREACHABLE
