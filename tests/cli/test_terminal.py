"""What a terminal of any width gets to see, and a pipe: no control of anybody's, no line too wide, a quiet end."""

import signal
import subprocess
import sys
import tempfile
import unicodedata
from uuid import UUID

import pytest
from rich.cells import cell_len

from tests.cli.recorded import WIDE, Recorded, durable_pg_in_terminal, record
from tests.migrations.support import start
from tests.support.cli import durable_pg, environment
from tests.support.harness import Database, value

MINE = ("--tenant", "T1", "--user", "U1")


@pytest.fixture(scope="module")
def recorded(module_db: Database) -> Recorded:
    return record(module_db)


def piped(db: Database, run: UUID, *options: str) -> str:
    done = durable_pg("runs", "show", str(run), "--url", db.url("auditor"), *options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("options", [(), ("--full",)])
def test_no_control_of_anybody_reaches_the_terminal(
    module_db: Database, recorded: Recorded, options: tuple[str, ...]
) -> None:
    whole = piped(module_db, recorded.failed, *options)
    url = module_db.url("auditor")
    lines = durable_pg_in_terminal("runs", "show", str(recorded.failed), "--url", url, *options, columns=140)
    for text in (whole, "\n".join(lines)):
        assert {c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs"}} == {"\n"}
        assert "\\x1b[31mred\\x1b[0m \\x1b]0;owned\\x07 \\x9b2J \\u202eesrever" in text


def test_markup_and_emoji_codes_stay_as_they_are_and_a_text_is_no_tool_call(
    module_db: Database, recorded: Recorded
) -> None:
    text = piped(module_db, recorded.failed, "--full")
    assert "[bold]markup[/bold] [link=x]y[/link] :smile:" in text
    calls = [line for line in piped(module_db, recorded.failed).splitlines() if line.lstrip().startswith("→")]
    assert len(calls) == 1
    assert "12345678901234567890123" in calls[0]


@pytest.mark.parametrize("columns", [80, 140])
@pytest.mark.parametrize(
    "command",
    [
        ("runs", "list"),
        ("runs", "list", "--tenant", "T1"),
        ("runs", "show", "long"),
        ("runs", "show", "long", "--full"),
        ("runs", "show", "failed"),
        ("sessions", "list"),
        ("sessions", "show", "long_session"),
        ("sessions", "show", "long_session", "--full"),
        ("sessions", "verify", "--all"),
    ],
)
def test_no_line_is_wider_than_the_terminal_and_no_uid_is_cut(
    module_db: Database, recorded: Recorded, command: tuple[str, ...], columns: int
) -> None:
    arguments = [str(getattr(recorded, word, word)) for word in command]
    lines = durable_pg_in_terminal(*arguments, "--url", module_db.url("auditor"), columns=columns)
    assert [line for line in lines if cell_len(line) > columns] == []
    text = "\n".join(lines)
    if command[1] == "list":
        assert str(recorded.long if command[0] == "runs" else recorded.long_session) in text
    elif command[1] == "show":
        assert arguments[2] in text
        assert command[0] == "sessions" or f"events ({300 if command[2] == 'long' else 3})" in text


def test_a_list_is_one_line_each_at_140_columns_and_two_at_80(module_db: Database, recorded: Recorded) -> None:
    arguments = ("runs", "list", "--url", module_db.url("app"), *MINE)
    assert len(durable_pg_in_terminal(*arguments, columns=140)) == 4
    assert len(durable_pg_in_terminal(*arguments, columns=80)) == 8


def test_into_a_pipe_a_list_is_plain_and_nothing_is_cut(module_db: Database, recorded: Recorded) -> None:
    done = durable_pg("runs", "list", "--url", module_db.url("auditor"))
    assert len(done.stdout.splitlines()) == 7
    assert f"an/app/{WIDE}" in done.stdout.replace("\\u200d", "\u200d")
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_a_reader_that_leaves_ends_it_quietly(
    module_db: Database, recorded: Recorded, as_json: tuple[str, ...]
) -> None:
    command = ["runs", "show", str(recorded.long), "--full", "--url", module_db.url("auditor"), *as_json]
    names = {name: text for name, text in environment().items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        [sys.executable, "-m", "durable_pg", *command],
        env=names,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tempfile.gettempdir(),
    )
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    assert (process.stderr.read(), process.wait(timeout=60)) == (b"", 141)
    process.stderr.close()


def test_ctrl_c_ends_it_quietly(db: Database) -> None:
    with db.superuser() as blocker:
        blocker.execute("lock table durable.runs in access exclusive mode")
        job = start("runs", "list", "--url", db.url("auditor"))
        with db.server.connect(db.name) as root:
            waiting = "select count(*) from pg_locks where not granted and relation = 'durable.runs'::regclass"
            while not value(root, waiting):
                assert job.poll() is None, job.communicate()
        job.send_signal(signal.SIGINT)
        out, err = job.communicate(timeout=30)
    assert (job.returncode, out) == (130, "")
    assert err == "interrupted: nothing was written\n"
