"""What a user's type checker sees: mypy --strict on a program that uses the client, and on its mistakes."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import datetime
import uuid

from psycopg_pool import AsyncConnectionPool, ConnectionPool
from typing_extensions import assert_type

from durable_pg import AsyncDurable, AsyncIdentity, Durable, Identity, errors, types


def turn(url: str) -> list[str]:
    with Durable.from_url(url, max_size=4) as durable:
        assert_type(durable, Durable)
        me = durable.act_as("acme", "user-7")
        assert_type(me, Identity)
        session = me.open_session("support", "s-1", {"plan": "gold"})
        assert_type(session, types.Session)
        assert_type(session.session_uid, uuid.UUID)
        appended = me.append_event(session, "user", {"parts": []}, invocation_id="inv-1")
        assert_type(appended.seq, int)
        run = me.start_run(session.session_uid, "inv-1", input=[1, 2])
        assert_type(run.tools_executed, list[str] | None)
        assert_type(run.outcome == "started", bool)
        try:
            me.settle_run(run, "succeeded", result={"text": "done"})
        except errors.ToolsIncomplete as error:
            assert_type(error.names, dict[str, str])
            assert_type(error.may_have_taken_effect, bool)
        (listed,) = me.list_runs()
        assert_type(listed.settled_at, datetime.datetime | None)
        assert_type(me.replay_verdict(listed), types.Verdict)
        return [event.author for event in me.read_events(session, latest=3)]


async def turn_async(pool: AsyncConnectionPool, other: ConnectionPool) -> types.State:
    me = AsyncDurable(pool).act_as("acme", "user-7")
    assert_type(me, AsyncIdentity)
    session = await me.open_session("support")
    assert_type(Durable(other).act_as("acme", "user-7"), Identity)
    return await me.get_state(session=session)
"""
MISTAKES = {
    'me.settle_run(run, "done")': "arg-type",
    "me.open_session(7)": "arg-type",
    "me.append_event(session)": "call-arg",
    'me.read_events(session, latest="3")': "arg-type",
    "me.start_run(session)": "call-arg",
    "me.list_session()": "attr-defined",
    "session.revision = 7": "misc",
    'run.outcome == "begun"': "comparison-overlap",
    'me.append_event(session, "agent", occurred_at="now")': "arg-type",
}


def mypy(tmp_path: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Check a program as its author would, who has the package installed and not its sources."""
    file = tmp_path / "program.py"
    file.write_text(program, "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file=", file.name]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)


def test_a_program_that_uses_the_client_is_strictly_typed(tmp_path: Path) -> None:
    done = mypy(tmp_path, PROGRAM)
    assert done.returncode == 0, done.stdout


def test_a_mistake_is_found_by_the_type_checker(tmp_path: Path) -> None:
    head = (
        "from durable_pg import Identity, types\n\n"
        "def turn(me: Identity, session: types.Session, run: types.RunOutcome) -> None:\n"
    )
    done = mypy(tmp_path, head + "".join(f"    {mistake}\n" for mistake in MISTAKES))
    first = head.count("\n") + 1
    found = {
        int(line.split(":")[1]) - first: line.rpartition("[")[2].rstrip("]")
        for line in done.stdout.splitlines()
        if ": error: " in line
    }
    assert found == dict(enumerate(MISTAKES.values())), done.stdout
