"""Completion in the shell."""

import subprocess
import sys

import pytest

from tests.support.cli import durable_pg_process, environment


def test_show_completion_prints_the_script_of_the_shell_it_is_asked_from() -> None:
    # A second command keeps bash from becoming durable-pg itself: it is the parent that is asked for its name.
    command = f"{sys.executable} -m durable_pg --show-completion; exit $?"
    done = subprocess.run(
        ["/bin/bash", "-c", command], env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "complete -o default -F _durable_pg_completion durable-pg" in done.stdout


@pytest.mark.parametrize(("shell", "words"), [("bash", "complete -o"), ("zsh", "compdef"), ("fish", "complete ")])
def test_show_completion_prints_the_script_of_a_named_shell(shell: str, words: str) -> None:
    # Otherwise typer prints that of the shell it was started from, whatever is named.
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = durable_pg_process("--show-completion", shell, extra=named)
    assert done.returncode == 0, done.stderr
    assert words in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("durable-pg ru", ["runs"]), ("durable-pg runs ", ["list", "show"]), ("durable-pg sessions v", ["verify"])],
)
def test_commands_are_completed(typed: str, offered: list[str]) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}
    done = durable_pg_process(extra={"_DURABLE_PG_COMPLETE": "complete_bash", **words})
    assert (done.returncode, done.stdout.split()) == (0, offered)
