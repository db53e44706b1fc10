"""Whoever stops a run from outside: a cancelled task, a tool without an answer, Ctrl-C, a generator that is closed."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from time import sleep
from typing import Any

import pytest
import pytest_asyncio

from durable_pg import AsyncDurable, AsyncIdentity, AsyncRun, Durable, Identity
from durable_pg._async.waiting import see_through
from durable_pg.errors import ConnectionLost, EffectTimedOut, EffectUnverified
from durable_pg.types import Session
from tests.client.disturbing import once_blocked, wait_until
from tests.client.leases import statuses, the_run
from tests.client.provider import Provider
from tests.support.harness import Connection, value
from tests.support.rented import Rented, nothing_written


@pytest_asyncio.fixture
async def me_async(db: Rented) -> AsyncIterator[AsyncIdentity]:
    async with AsyncDurable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest_asyncio.fixture
async def session_async(me_async: AsyncIdentity) -> Session:
    return await me_async.open_session("support", "s-1")


@pytest.fixture
def me(db: Rented) -> Iterator[Identity]:
    with Durable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


class Slow:
    """A tool that goes on until it is stopped."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.keys: list[str] = []

    async def __call__(self, key: str) -> Any:
        self.keys.append(key)
        self.reached.set()
        await asyncio.Event().wait()


async def executed(me: AsyncIdentity, session: Session, tool: Slow) -> None:
    async with me.run(session, "inv-1") as run:
        await run.effect("refund", call=tool)


@pytest.mark.parametrize("times", [1, 3])
async def test_a_cancelled_task_gives_its_run_back_and_leaves_its_effect_unverified(
    db: Rented, me_async: AsyncIdentity, session_async: Session, times: int
) -> None:
    tool = Slow()
    task = asyncio.create_task(executed(me_async, session_async, tool))
    await tool.reached.wait()
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    row = the_run(db)
    assert (row["status"], row["lease_holder"], statuses(db)) == ("interrupted", None, ["unverified"])
    assert row["interrupted_with"]["type"] == "CancelledError"
    with pytest.raises(EffectUnverified):
        await executed(me_async, session_async, tool)
    assert len(tool.keys) == 1


@contextmanager
def cancelled_while_it_waits(db: Rented, holder: Connection, tasks: list[asyncio.Task[None]]) -> Iterator[None]:
    """Cancel a task whose call waits for `holder`, see that the call goes on waiting, and let it have its way."""
    loop, cancelled = asyncio.get_running_loop(), threading.Event()

    def cancel_and_let_go(root: Connection, pid: int) -> None:
        loop.call_soon_threadsafe(tasks[0].cancel)
        # In the order given: when this runs, the task has been told.
        loop.call_soon_threadsafe(loop.call_soon, cancelled.set)
        assert cancelled.wait(10)
        for _ in range(50):
            assert value(root, "select cardinality(pg_blocking_pids(%s))", pid) > 0, "the call was given up"
            sleep(0.01)
        holder.rollback()

    with once_blocked(db, holder, cancel_and_let_go):
        yield


async def test_a_task_that_is_cancelled_while_it_records_an_outcome_records_it(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    async def tool(key: str) -> str:
        holder.execute("select from durable.effects where idempotency_key = %s for update", (key,))
        return "done"

    async def work() -> None:
        async with me_async.run(session_async, "inv-1") as run:
            await run.effect("refund", call=tool)

    with db.superuser() as holder:
        tasks = [asyncio.create_task(work())]
        with cancelled_while_it_waits(db, holder, tasks), pytest.raises(asyncio.CancelledError):
            await tasks[0]
    assert (statuses(db), the_run(db)["status"]) == (["succeeded"], "interrupted")


async def test_a_task_that_is_cancelled_while_it_gives_its_run_back_gives_it_back(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    async def work() -> None:
        async with me_async.run(session_async, "inv-1") as run:
            holder.execute("select from durable.runs where run_uid = %s for update", (run.run_uid,))
            raise ZeroDivisionError

    with db.superuser() as holder:
        tasks = [asyncio.create_task(work())]
        with cancelled_while_it_waits(db, holder, tasks), pytest.raises(asyncio.CancelledError) as cancelled:
            await tasks[0]
    assert isinstance(cancelled.value.__context__, ZeroDivisionError)
    row = the_run(db)
    assert (row["status"], row["interrupted_with"]["type"]) == ("interrupted", "ZeroDivisionError")


async def test_a_call_that_is_seen_through_does_not_outlast_its_time() -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    with pytest.raises(ConnectionLost, match="no answer in time") as lost:
        await see_through(never, after_cancel=10, in_all=0.05)
    assert lost.value.may_have_taken_effect
    task = asyncio.create_task(see_through(never, after_cancel=0.05))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_tool_that_takes_too_long_leaves_its_effect_unverified(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    tool = Slow()
    async with me_async.run(session_async, "inv-1") as run:
        with pytest.raises(EffectTimedOut) as timed_out:
            await run.effect("refund", call=tool, timeout=0.05, failed_on=TimeoutError)
        assert isinstance(timed_out.value, TimeoutError)
        with pytest.raises(EffectUnverified):
            await run.effect("refund", call=tool)
    assert (statuses(db), len(tool.keys)) == (["unverified"], 1)


async def test_a_turn_that_takes_too_long_for_its_caller_can_be_taken_up(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    async def turn(run: AsyncRun) -> str:
        if run.resumed:
            return "done"
        await asyncio.Event().wait()
        return "never"

    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(me_async.run_once(session_async, "inv-1", turn), 0.3)
    assert the_run(db)["status"] == "interrupted"
    assert await me_async.run_once(session_async, "inv-1", turn) == "done"


async def test_an_async_generator_that_is_closed_gives_its_run_back(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    async def steps() -> AsyncIterator[int]:
        async with me_async.run(session_async, "inv-1") as run:
            yield run.attempt

    generator = steps()
    assert await anext(generator) == 1
    await generator.aclose()  # type: ignore[attr-defined]  # an AsyncGenerator
    assert (the_run(db)["status"], the_run(db)["interrupted_with"]["type"]) == ("interrupted", "GeneratorExit")


def test_a_generator_that_is_closed_gives_its_run_back(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s-1")

    def steps() -> Iterator[int]:
        with me.run(session, "inv-1") as run:
            yield run.attempt

    generator = steps()
    assert next(generator) == 1
    generator.close()  # type: ignore[attr-defined]  # a Generator
    assert the_run(db)["status"] == "interrupted"


def test_ctrl_c_in_a_tool_gives_the_run_back_and_leaves_the_effect_unverified(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s-1")

    def tool(key: str) -> None:
        signal.pthread_kill(threading.main_thread().ident or os.getpid(), signal.SIGINT)
        threading.Event().wait(10)

    with pytest.raises(KeyboardInterrupt), me.run(session, "inv-1") as run:
        run.effect("refund", call=tool)
    assert (the_run(db)["status"], statuses(db)) == ("interrupted", ["unverified"])


def test_a_plain_tool_that_takes_too_long_is_left_to_itself(db: Rented, me: Identity) -> None:
    session, over = me.open_session("support", "s-1"), threading.Event()
    with me.run(session, "inv-1") as run:
        with pytest.raises(EffectTimedOut):
            run.effect("refund", call=lambda _: over.wait(10), timeout=0.05, failed_on=TimeoutError)
        assert statuses(db) == ["unverified"]
        over.set()
    wait_until(lambda: "durable-pg tool" not in {thread.name for thread in threading.enumerate()})
    assert statuses(db) == ["unverified"]


def test_what_a_timed_tool_raises_in_its_thread_is_raised(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s-1")
    with me.run(session, "inv-1") as run, pytest.raises(ZeroDivisionError):
        run.effect("refund", call=lambda _: 1 // 0, timeout=10)


async def nothing(key: str) -> None: ...


@pytest.mark.parametrize("parameter", ["call", "verify"])
def test_an_async_function_is_refused_by_the_synchronous_client_before_anything_is_begun(
    db: Rented, me: Identity, parameter: str
) -> None:
    functions: dict[str, Any] = {"call": Provider(), parameter: nothing}
    with me.run(me.open_session("support", "s-1"), "inv-1") as run:
        with nothing_written(db), pytest.raises(TypeError, match="AsyncDurable"):
            run.effect("refund", **functions)
        with pytest.raises(TypeError, match="AsyncDurable"):
            run.effect("refund", call=lambda _: nothing(""))
        assert statuses(db) == ["unverified"]
    with pytest.raises(TypeError, match="AsyncDurable"):
        me.run_once(me.open_session("support", "s-2"), "inv-1", nothing)  # type: ignore[arg-type]  # that is the point


def test_a_process_that_is_killed_leaves_a_run_that_can_be_taken_and_an_effect_that_can_not(
    db: Rented, me: Identity
) -> None:
    session = me.open_session("support", "s-1")
    script = f"""
import os, signal
from datetime import timedelta
from durable_pg import Durable
with Durable.from_url({db.url("app")!r}) as durable:
    me = durable.act_as({db.tenant("T1")!r}, "U1")
    with me.run({str(session.session_uid)!r}, "inv-1", lease=timedelta(seconds=0.5)) as run:
        run.effect("mail", call=lambda key: "sent")
        run.checkpoint(1, {{"mailed": True}})
        run.effect("refund", step=2, call=lambda key: os.kill(os.getpid(), signal.SIGKILL))
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert statuses(db) == ["begun", "succeeded"]
    provider = Provider()
    wait_until(lambda: me.list_effects(status="unverified") != [])
    with pytest.raises(EffectUnverified), me.run(session, "inv-1") as run:
        assert (run.attempt, run.step, run.state) == (2, 1, {"mailed": True})
        run.effect("refund", step=2, call=provider)
    assert provider.keys == []
    assert [run.unverified for run in resumable(db)] == [1]


def resumable(db: Rented) -> Any:
    with Durable.from_url(db.url("maintainer"), max_size=1) as durable:
        found = durable.maintainer().list_resumable()
    return [run for run in found if run.tenant_id == db.tenant("T1")]
