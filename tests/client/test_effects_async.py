"""run.effect(): what is called, recorded and raised, for each way in which a tool may end."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from durable_pg import AsyncDurable, AsyncIdentity, EffectFailed
from durable_pg.errors import EffectPayloadDiffers, EffectTimedOut, EffectUnverified, JsonNotStorable
from durable_pg.types import Session
from tests.client.leases import statuses
from tests.client.provider_async import AsyncProvider, Declined
from tests.support.rented import Rented, nothing_written, stored


@pytest_asyncio.fixture
async def me_async(db: Rented) -> AsyncIterator[AsyncIdentity]:
    async with AsyncDurable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest_asyncio.fixture
async def session_async(me_async: AsyncIdentity) -> Session:
    return await me_async.open_session("support", "s-1")


async def test_a_result_is_recorded_before_it_is_returned(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    provider = AsyncProvider({"id": "re_7"})
    async with me_async.run(session_async, "inv-1") as run:
        assert await run.effect("refund", step=1, args={"order": 7}, call=provider) == {"id": "re_7"}
        (effect,) = stored(db, "effects")
        assert (effect["status"], effect["result"], effect["args"]) == ("succeeded", {"id": "re_7"}, {"order": 7})
        assert provider.keys == [effect["idempotency_key"]]


async def test_a_plain_function_will_do(me_async: AsyncIdentity, session_async: Session) -> None:
    async with me_async.run(session_async, "inv-1") as run:
        assert await run.effect("refund", call=lambda key: key[:4]) == "dpg_"


async def test_a_recorded_result_is_returned_without_a_call(me_async: AsyncIdentity, session_async: Session) -> None:
    provider = AsyncProvider({"id": 1}, {"id": 2})
    async with me_async.run(session_async, "inv-1") as run:
        first = await run.effect("refund", args={"order": 7}, call=provider)
        assert await run.effect("refund", args={"order": 7}, call=provider) == first == {"id": 1}
        assert await run.effect("refund", args={"order": 7}, ordinal=1, call=provider) == {"id": 2}
    assert len(provider.keys) == 2


async def test_a_resumed_run_gets_what_the_first_attempt_recorded(
    me_async: AsyncIdentity, session_async: Session
) -> None:
    provider = AsyncProvider("done")
    with pytest.raises(ZeroDivisionError):
        async with me_async.run(session_async, "inv-1") as run:
            await run.effect("refund", args={"order": 7}, call=provider)
            raise ZeroDivisionError
    async with me_async.run(session_async, "inv-1") as run:
        assert await run.effect("refund", args={"order": 7}, call=provider) == "done"
    assert len(provider.keys) == 1


async def test_an_intent_is_done_once_across_runs(me_async: AsyncIdentity, session_async: Session) -> None:
    provider = AsyncProvider("done")
    for invocation in ("inv-1", "inv-2"):
        async with me_async.run(session_async, invocation) as run:
            assert await run.effect("refund", args={"order": 7}, intent="refund:7", call=provider) == "done"
    assert len(provider.keys) == 1


async def test_other_arguments_under_an_intent_are_refused_unless_they_may_differ(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    provider = AsyncProvider("done")
    intent: dict[str, Any] = {"intent": "refund:7", "call": provider}
    async with me_async.run(session_async, "inv-1") as run:
        await run.effect("refund", args={"note": "sorry"}, **intent)
        with nothing_written(db), pytest.raises(EffectPayloadDiffers):
            await run.effect("refund", args={"note": "so sorry"}, **intent)
        assert await run.effect("refund", args={"note": "so sorry"}, args_may_differ=True, **intent) == "done"
    assert len(provider.keys) == 1


@pytest.mark.parametrize("error", ["card declined", {"code": "declined", "nul": "a\0b"}, None])
async def test_a_failure_that_the_tool_is_sure_of_is_recorded_and_may_be_begun_again(
    db: Rented, me_async: AsyncIdentity, session_async: Session, error: Any
) -> None:
    provider = AsyncProvider(EffectFailed(error), "done")
    async with me_async.run(session_async, "inv-1") as run:
        with pytest.raises(EffectFailed) as failed:
            await run.effect("refund", call=provider)
        assert failed.value.error == error
        (recorded,) = await me_async.list_effects(run.run_uid)
        assert recorded.status == "failed"
        assert recorded.error == (error or {"type": "EffectFailed", "message": "the effect did not happen"})
        assert await run.effect("refund", call=provider) == "done"
    assert statuses(db) == ["failed", "succeeded"]
    assert len(set(provider.keys)) == 2


@pytest.mark.parametrize("failed_on", [Declined, (KeyError, Declined)])
async def test_a_listed_exception_is_a_failure(
    db: Rented, me_async: AsyncIdentity, session_async: Session, failed_on: Any
) -> None:
    async with me_async.run(session_async, "inv-1") as run:
        with pytest.raises(EffectFailed) as failed:
            await run.effect("refund", call=AsyncProvider(Declined("no money")), failed_on=failed_on)
    assert isinstance(failed.value.__cause__, Declined)
    assert failed.value.error == {"type": "Declined", "message": "no money"}
    assert statuses(db) == ["failed"]


async def test_an_error_that_is_no_json_is_recorded_by_its_type_and_message(
    me_async: AsyncIdentity, session_async: Session
) -> None:
    async with me_async.run(session_async, "inv-1") as run:
        with pytest.raises(EffectFailed):
            await run.effect("refund", call=AsyncProvider(EffectFailed({"why": {1, 2}})))
        (recorded,) = await me_async.list_effects(run.run_uid)
    assert (recorded.status, recorded.error["type"]) == ("failed", "EffectFailed")


@pytest.mark.parametrize("failed_on", [BaseException, (KeyError, KeyboardInterrupt), "Declined"])
async def test_what_says_nothing_about_the_tool_can_not_be_listed(
    db: Rented, me_async: AsyncIdentity, session_async: Session, failed_on: Any
) -> None:
    async with me_async.run(session_async, "inv-1") as run:
        with nothing_written(db), pytest.raises(TypeError, match="failed_on"):
            await run.effect("refund", call=AsyncProvider(), failed_on=failed_on)


@pytest.mark.parametrize("error", [ConnectionError("reset"), TimeoutError(), ValueError("?"), GeneratorExit()])
async def test_any_other_exception_leaves_it_unverified_and_is_raised_as_it_is(
    db: Rented, me_async: AsyncIdentity, session_async: Session, error: BaseException
) -> None:
    provider = AsyncProvider(error, "done")
    with pytest.raises(type(error)) as raised:
        async with me_async.run(session_async, "inv-1") as run:
            await run.effect("refund", call=provider)
    assert raised.value is error
    (effect,) = stored(db, "effects")
    assert (effect["status"], effect["error"]["type"]) == ("unverified", type(error).__name__)
    async with me_async.run(session_async, "inv-1") as run:
        with pytest.raises(EffectUnverified) as unverified:
            await run.effect("refund", call=provider)
    assert unverified.value.effect.effect_uid == effect["effect_uid"]
    assert "resolve_effect" in unverified.value.hint
    assert len(provider.keys) == 1


async def test_a_result_that_is_no_json_leaves_it_unverified(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    async with me_async.run(session_async, "inv-1") as run:
        with pytest.raises(JsonNotStorable, match="refund was called, but its result can't be recorded") as unfit:
            await run.effect("refund", call=AsyncProvider({"at": {1}}))
        assert unfit.value.column == "result"
        (effect,) = stored(db, "effects")
        assert (effect["status"], effect["error"]["type"]) == ("unverified", "JsonNotStorable")


async def test_what_can_not_be_called_begins_nothing(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    wrong: Any = "refund"
    async with me_async.run(session_async, "inv-1") as run:
        with nothing_written(db), pytest.raises(TypeError, match="a function is needed"):
            await run.effect("refund", call=wrong)
        with nothing_written(db), pytest.raises(TypeError, match="a function is needed"):
            await run.effect("refund", call=AsyncProvider(), verify=wrong)


async def test_a_tool_that_ends_in_time_is_not_disturbed(me_async: AsyncIdentity, session_async: Session) -> None:
    async with me_async.run(session_async, "inv-1") as run:
        assert await run.effect("refund", call=AsyncProvider("done"), timeout=10) == "done"
        with pytest.raises(TimeoutError) as own:
            await run.effect("mail", call=AsyncProvider(TimeoutError("the tool's own")), timeout=10)
        assert not isinstance(own.value, EffectTimedOut)
        with pytest.raises(EffectFailed):
            await run.effect("book", call=AsyncProvider(TimeoutError("its own")), timeout=10, failed_on=TimeoutError)
