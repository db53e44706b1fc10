"""What a user's type checker sees: mypy --strict on a program that uses the client, and on its mistakes."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import datetime
import uuid

from psycopg_pool import AsyncConnectionPool, ConnectionPool
from typing_extensions import assert_type

from durable_pg import AsyncDurable, AsyncIdentity, AsyncRun, Durable, Identity, Run, durable_tool, errors, types


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
        assert_type(run.attempt, int | None)
        begun = me.begin_effect(run, "refund", {"order": 7}, lease=datetime.timedelta(minutes=1))
        assert_type(begun.outcome == "execute", bool)
        assert_type(me.finish_effect(begun, "succeeded").finished_at, datetime.datetime | None)
        assert_type(me.load_checkpoint(run), types.Checkpoint | None)
        assert_type(me.record_step(run, 1, events=[{"author": "agent", "content": 1}]).event_seqs, list[int])
        assert_type(durable.maintainer().list_resumable(), list[types.ResumableRun])
        try:
            me.settle_run(run, "succeeded", result={"text": "done"})
        except errors.ToolsIncomplete as error:
            assert_type(error.names, dict[str, str])
            assert_type(error.may_have_taken_effect, bool)
        (listed,) = me.list_runs()
        assert_type(listed.settled_at, datetime.datetime | None)
        assert_type(me.replay_verdict(listed), types.Verdict)
        return [event.author for event in me.read_events(session, latest=3)]


@durable_tool(replay_class="keyed", intent=lambda args: f"refund:{args['order']}")
def refund(order: int, *, idempotency_key: str = "") -> str:
    return idempotency_key


def execute(run: Run) -> object:
    assert_type(run.attempt, int)
    assert_type(refund(7), str)
    run.checkpoint(1, {"n": 1})
    return run.call(refund, {"order": 7}, step=1)


async def execute_async(run: AsyncRun) -> object:
    async def call(key: str) -> str:
        return key

    return await run.effect("refund", call=call, failed_on=(ValueError, KeyError))


def run_it(me: Identity, session: types.Session) -> None:
    me.run_once(session, "inv-1", execute, message={"parts": []})
    try:
        with me.run(session, "inv-2", lease=datetime.timedelta(seconds=30)) as run:
            assert_type(run, Run)
            run.result = {"text": "done"}
    except errors.RunSettled as settled:
        assert_type(settled.run, types.RunOutcome | None)
    except errors.RunBusy as busy:
        assert_type(busy.lease_expires_at, datetime.datetime | None)
    except errors.EffectUnverified as unverified:
        print(unverified.effect.effect_uid)


async def run_it_async(me: AsyncIdentity, session: types.Session) -> None:
    await me.run_once(session, "inv-1", execute_async)
    async with me.run(session, "inv-2") as run:
        assert_type(run, AsyncRun)


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
    'me.start_run(session, "inv-1", lease=60)': "arg-type",
    'me.finish_effect(run.run_uid, "done")': "arg-type",
    'me.resolve_effect(run.run_uid, "unverified", {})': "arg-type",
    'me.record_step(run, 1, events=[{"autor": "agent"}])': "typeddict-unknown-key",
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
