"""Effects that nobody knows about: who is asked, what is believed, and what is never called again."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from durable_pg import AsyncDurable, AsyncIdentity, Failed, Succeeded, Unknown
from durable_pg.errors import (
    ArgumentInvalid,
    EffectDiverged,
    EffectInFlight,
    EffectUnverified,
    LeaseLost,
    WriteOnce,
)
from durable_pg.types import Session
from tests.client.leases import let_the_lease_run_out, statuses
from tests.client.provider_async import LOOK, AsyncProvider, leave_unverified_async
from tests.support.rented import Rented, stored

DAY = timedelta(days=1)


@pytest_asyncio.fixture
async def me_async(db: Rented) -> AsyncIterator[AsyncIdentity]:
    async with AsyncDurable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest_asyncio.fixture
async def session_async(me_async: AsyncIdentity) -> Session:
    return await me_async.open_session("support", "s-1")


async def test_a_verifier_that_saw_it_gives_its_result(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    await leave_unverified_async(me_async, session_async)
    asked, provider = AsyncProvider(Succeeded({"id": "re_7"}, **LOOK)), AsyncProvider()
    async with me_async.run(session_async, "inv-1") as run:
        assert await run.effect("refund", call=provider, verify=asked) == {"id": "re_7"}
        assert await run.effect("refund", call=provider) == {"id": "re_7"}
    (effect,) = stored(db, "effects")
    assert (effect["status"], effect["result"]) == ("succeeded", {"id": "re_7"})
    assert effect["evidence"].items() >= LOOK.items()
    assert (asked.keys, provider.keys) == ([effect["idempotency_key"]], [])
    assert [row["action"] for row in stored(db, "audit_log")] == ["resolve_effect"]


async def test_a_verifier_that_knows_that_it_did_not_happen_lets_it_happen(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    await leave_unverified_async(me_async, session_async)
    asked, provider = AsyncProvider(Failed({"code": 404}, channel="API", seen="none")), AsyncProvider("done")
    async with me_async.run(session_async, "inv-1") as run:
        assert await run.effect("refund", call=provider, verify=asked) == "done"
    assert statuses(db) == ["failed", "succeeded"]
    assert len(provider.keys) == len(asked.keys) == 1
    assert provider.keys != asked.keys
    (evidence,) = (row["evidence"] for row in stored(db, "effects") if row["evidence"])
    assert (evidence["error"], evidence["seen"]) == ({"code": 404}, "none")


@pytest.mark.parametrize("answer", [Unknown(), ConnectionError("reset")])
async def test_a_verifier_that_can_not_tell_leaves_it_unverified(
    db: Rented, me_async: AsyncIdentity, session_async: Session, answer: Any
) -> None:
    await leave_unverified_async(me_async, session_async)
    provider = AsyncProvider()
    async with me_async.run(session_async, "inv-1") as run:
        with pytest.raises(EffectUnverified) as unverified:
            await run.effect("refund", call=provider, verify=AsyncProvider(answer))
        assert unverified.value.__cause__ is (answer if isinstance(answer, Exception) else None)
    assert (statuses(db), provider.keys) == (["unverified"], [])


async def test_a_verifier_answers_one_of_three(db: Rented, me_async: AsyncIdentity, session_async: Session) -> None:
    await leave_unverified_async(me_async, session_async)
    async with me_async.run(session_async, "inv-1") as run:
        with pytest.raises(TypeError, match="Succeeded, Failed or Unknown, not bool"):
            await run.effect("refund", call=AsyncProvider(), verify=AsyncProvider(True))
    assert statuses(db) == ["unverified"]


async def test_evidence_without_words_resolves_nothing(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    await leave_unverified_async(me_async, session_async)
    provider = AsyncProvider()
    async with me_async.run(session_async, "inv-1") as run:
        with pytest.raises(ArgumentInvalid, match="evidence"):
            await run.effect("refund", call=provider, verify=AsyncProvider(Failed(channel="API", seen=" ")))
    assert (statuses(db), provider.keys) == (["unverified"], [])


async def test_nobody_is_asked_about_an_effect_that_is_known_or_has_just_been_called(
    me_async: AsyncIdentity, session_async: Session
) -> None:
    asked = AsyncProvider(Unknown())
    async with me_async.run(session_async, "inv-1") as run:
        await run.effect("refund", call=AsyncProvider("done"), verify=asked)
        assert await run.effect("refund", call=AsyncProvider(), verify=asked) == "done"
        with pytest.raises(ValueError, match="wrong"):
            await run.effect("mail", call=AsyncProvider(ValueError("wrong")), verify=asked)
    assert asked.keys == []


async def test_a_key_that_the_provider_dedupes_is_sent_again_as_it_was(
    me_async: AsyncIdentity, session_async: Session
) -> None:
    provider = AsyncProvider(ConnectionError("reset"), "done")
    with pytest.raises(ConnectionError):
        async with me_async.run(session_async, "inv-1") as run:
            await run.effect("refund", provider_dedupes_for=DAY, call=provider)
    async with me_async.run(session_async, "inv-1") as run:
        assert await run.effect("refund", provider_dedupes_for=DAY, call=provider) == "done"
    assert len(provider.keys) == 2
    assert len(set(provider.keys)) == 1


async def test_a_call_that_an_earlier_attempt_did_not_make_diverges(
    me_async: AsyncIdentity, session_async: Session
) -> None:
    provider = AsyncProvider({"id": "re_7"})
    with pytest.raises(ZeroDivisionError):
        async with me_async.run(session_async, "inv-1") as run:
            await run.effect("refund", step=1, args={"order": 7, "cents": 500}, call=provider)
            raise ZeroDivisionError
    async with me_async.run(session_async, "inv-1") as run:
        with pytest.raises(EffectDiverged) as diverged:
            await run.effect("refund", step=1, args={"order": 7, "cents": 501}, call=provider)
        earlier = diverged.value.effect
        assert (earlier.tool, earlier.args, earlier.status) == ("refund", {"order": 7, "cents": 500}, "succeeded")
        assert "Ask first for the earlier call" in diverged.value.hint
        assert await run.effect(earlier.tool, step=1, args=earlier.args, call=provider) == {"id": "re_7"}
        await run.effect("refund", step=2, args={"order": 7, "cents": 1}, call=provider)
    assert len(provider.keys) == 2


async def test_an_effect_that_another_run_executes_is_in_flight(
    me_async: AsyncIdentity, session_async: Session
) -> None:
    late = AsyncProvider()

    async def meanwhile(key: str) -> str:
        async with me_async.run(session_async, "inv-2") as other:
            with pytest.raises(EffectInFlight) as held:
                await other.effect("refund", intent="refund:7", call=late)
            assert held.value.effect is not None
            assert held.value.lease_expires_at == held.value.effect.lease_expires_at is not None
        return "done"

    async with me_async.run(session_async, "inv-1") as run:
        assert await run.effect("refund", intent="refund:7", call=meanwhile) == "done"
    assert late.keys == []


async def test_a_true_outcome_is_recorded_though_the_lease_is_over(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    async def slow(key: str) -> str:
        let_the_lease_run_out(db, run.run_uid)
        return "done"

    with pytest.raises(LeaseLost):
        async with me_async.run(session_async, "inv-1") as run:
            assert await run.effect("refund", call=slow) == "done"
            assert statuses(db) == ["succeeded"]


async def test_an_outcome_against_what_somebody_has_seen_is_refused_and_not_hidden(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    calls = []

    async def resolved_meanwhile(key: str) -> str:
        calls.append(key)
        let_the_lease_run_out(db, run.run_uid)
        (effect,) = await me_async.list_effects(run.run_uid)
        await me_async.resolve_effect(effect, "failed", {"channel": "phone", "seen": "nothing"})
        return "done"

    with pytest.raises(WriteOnce):
        async with me_async.run(session_async, "inv-1") as run:
            await run.effect("refund", call=resolved_meanwhile)
    assert [(row["status"], row["result"]) for row in stored(db, "effects")] == [("failed", None)]
    assert len(calls) == 1


async def test_an_outcome_of_an_effect_that_was_begun_again_is_refused(
    db: Rented, me_async: AsyncIdentity, session_async: Session
) -> None:
    async def overtaken(key: str) -> str:
        let_the_lease_run_out(db, run.run_uid)
        async with me_async.run(session_async, "inv-1") as other:
            await other.effect("refund", provider_dedupes_for=DAY, call=AsyncProvider("second"))
        return "first"

    with pytest.raises(LeaseLost):
        async with me_async.run(session_async, "inv-1") as run:
            await run.effect("refund", provider_dedupes_for=DAY, call=overtaken)
    assert [(row["status"], row["result"]) for row in stored(db, "effects")] == [("succeeded", "second")]
