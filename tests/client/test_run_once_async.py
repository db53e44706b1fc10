"""What a run records in its block, and run_once(), which executes a turn or knows its answer."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from durable_pg import AsyncDurable, AsyncIdentity, AsyncRun
from durable_pg.errors import (
    CheckpointGap,
    PoolNeeded,
    RunSettled,
)
from durable_pg.types import Session
from tests.client.brought_async import bring_async
from tests.client.leases import statuses
from tests.client.provider_async import AsyncProvider
from tests.support.calls import said, tool_call
from tests.support.rented import Rented, nothing_written, stored


@pytest_asyncio.fixture
async def me_async(db: Rented) -> AsyncIterator[AsyncIdentity]:
    async with AsyncDurable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest_asyncio.fixture
async def session_async(me_async: AsyncIdentity) -> Session:
    return await me_async.open_session("support", "s-1")


async def test_events_of_a_run_carry_invocation_and_attempt(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    async with me_async.run(session_async, "inv-1") as run:
        await run.append_event("agent", tool_call("refund"), event_id="e-1", state_delta={"n": 1}, metadata={"t": 1})
        assert (await run.append_event("agent", tool_call("refund"), event_id="e-1")).outcome == "duplicate"
    (event,) = await me_async.read_events(session_async)
    assert (event.invocation_id, event.attempt, event.tool_calls, event.metadata) == ("inv-1", 1, ["refund"], {"t": 1})
    assert run.outcome.tools_executed == ["refund"]


async def test_run_once_calls_the_turn_once_and_then_returns_what_is_recorded(
    me_async: AsyncIdentity, session_async: Session
) -> None:
    turns: list[int] = []

    async def turn(run: AsyncRun) -> Any:
        turns.append(run.attempt)
        return {"text": "done"}

    for _ in range(2):
        assert await me_async.run_once(session_async, "inv-1", turn, message=said("hi")) == {"text": "done"}
    assert turns == [1]
    assert len(await me_async.read_events(session_async)) == 1


async def test_run_once_goes_on_where_an_attempt_was_interrupted(
    me_async: AsyncIdentity, session_async: Session
) -> None:
    provider = AsyncProvider("done")

    async def turn(run: AsyncRun) -> Any:
        result = await run.effect("refund", call=provider)
        if not run.resumed:
            raise ZeroDivisionError
        return result

    with pytest.raises(ZeroDivisionError):
        await me_async.run_once(session_async, "inv-1", turn)
    assert await me_async.run_once(session_async, "inv-1", turn) == "done"
    assert len(provider.keys) == 1


async def test_run_once_says_that_a_run_has_failed_each_time(me_async: AsyncIdentity, session_async: Session) -> None:
    async def turn(run: AsyncRun) -> Any:
        await run.fail("no")
        return "not an answer"

    for _ in range(2):
        with pytest.raises(RunSettled) as settled:
            await me_async.run_once(session_async, "inv-1", turn)
        assert settled.value.run is not None
        assert (settled.value.run.status, settled.value.run.error) == ("failed", "no")


async def test_run_once_does_not_take_the_answer_of_a_run_inside_for_its_own(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    async with me_async.run(session_async, "inv-2") as inner:
        inner.result = "of the inner one"

    async def turn(run: AsyncRun) -> Any:
        async with me_async.run(session_async, "inv-2"):
            pytest.fail("entered")

    with pytest.raises(RunSettled):
        await me_async.run_once(session_async, "inv-1", turn)
    assert statuses(db, "runs") == ["interrupted", "succeeded"]


async def test_a_run_on_a_connection_that_was_brought_is_refused_at_once(db: Rented, session_async: Session) -> None:
    async with bring_async(db, "psycopg") as brought:
        me = AsyncDurable.on(brought.connection).act_as(db.tenant("T1"), "U1")
        with nothing_written(db), pytest.raises(PoolNeeded, match="begin_effect") as refused:
            me.run(session_async, "inv-1")
        assert "committed before a tool is called" in refused.value.detail


async def test_steps_are_saved_one_by_one(db: Rented, me_async: AsyncIdentity, session_async: Session) -> None:
    async with me_async.run(session_async, "inv-1") as run:
        assert (await run.checkpoint(1, {"n": 1})).outcome == "saved"
        assert (run.step, run.state) == (1, {"n": 1})
        assert (await run.checkpoint(1, {"n": 1})).outcome == "already_saved"
        with nothing_written(db), pytest.raises(CheckpointGap):
            await run.checkpoint(3, {"n": 3})
        assert run.step == 1
        begun = await me_async.begin_effect(run.outcome, "mail", step=2)
        step = await run.record_step(
            2,
            events=[{"author": "agent", "content": tool_call("mail"), "event_id": "e-1"}],
            finished=[{"effect_uid": begun.effect_uid, "status": "succeeded", "result": "sent"}],
            state={"n": 2},
        )
        assert (step.outcome, step.event_seqs, run.step, run.state) == ("saved", [1], 2, {"n": 2})
        assert (await run.record_step(3)).outcome == "recorded"
        assert run.step == 2
    assert [(row["status"], row["result"]) for row in stored(db, "effects")] == [("succeeded", "sent")]
