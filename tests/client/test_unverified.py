"""Effects that nobody knows about: who is asked, what is believed, and what is never called again."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from durable_pg import Durable, Failed, Identity, Succeeded, Unknown
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
from tests.client.provider import LOOK, Provider, leave_unverified
from tests.support.rented import Rented, stored

DAY = timedelta(days=1)


@pytest.fixture
def me(db: Rented) -> Iterator[Identity]:
    with Durable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest.fixture
def session(me: Identity) -> Session:
    return me.open_session("support", "s-1")


def test_a_verifier_that_saw_it_gives_its_result(db: Rented, me: Identity, session: Session) -> None:
    leave_unverified(me, session)
    asked, provider = Provider(Succeeded({"id": "re_7"}, **LOOK)), Provider()
    with me.run(session, "inv-1") as run:
        assert run.effect("refund", call=provider, verify=asked) == {"id": "re_7"}
        assert run.effect("refund", call=provider) == {"id": "re_7"}
    (effect,) = stored(db, "effects")
    assert (effect["status"], effect["result"]) == ("succeeded", {"id": "re_7"})
    assert effect["evidence"].items() >= LOOK.items()
    assert (asked.keys, provider.keys) == ([effect["idempotency_key"]], [])
    assert [row["action"] for row in stored(db, "audit_log")] == ["resolve_effect"]


def test_a_verifier_that_knows_that_it_did_not_happen_lets_it_happen(
    db: Rented, me: Identity, session: Session
) -> None:
    leave_unverified(me, session)
    asked, provider = Provider(Failed({"code": 404}, channel="API", seen="none")), Provider("done")
    with me.run(session, "inv-1") as run:
        assert run.effect("refund", call=provider, verify=asked) == "done"
    assert statuses(db) == ["failed", "succeeded"]
    assert len(provider.keys) == len(asked.keys) == 1
    assert provider.keys != asked.keys
    (evidence,) = (row["evidence"] for row in stored(db, "effects") if row["evidence"])
    assert (evidence["error"], evidence["seen"]) == ({"code": 404}, "none")


@pytest.mark.parametrize("answer", [Unknown(), ConnectionError("reset")])
def test_a_verifier_that_can_not_tell_leaves_it_unverified(
    db: Rented, me: Identity, session: Session, answer: Any
) -> None:
    leave_unverified(me, session)
    provider = Provider()
    with me.run(session, "inv-1") as run:
        with pytest.raises(EffectUnverified) as unverified:
            run.effect("refund", call=provider, verify=Provider(answer))
        assert unverified.value.__cause__ is (answer if isinstance(answer, Exception) else None)
    assert (statuses(db), provider.keys) == (["unverified"], [])


def test_a_verifier_answers_one_of_three(db: Rented, me: Identity, session: Session) -> None:
    leave_unverified(me, session)
    with me.run(session, "inv-1") as run, pytest.raises(TypeError, match="Succeeded, Failed or Unknown, not bool"):
        run.effect("refund", call=Provider(), verify=Provider(True))
    assert statuses(db) == ["unverified"]


def test_evidence_without_words_resolves_nothing(db: Rented, me: Identity, session: Session) -> None:
    leave_unverified(me, session)
    provider = Provider()
    with me.run(session, "inv-1") as run, pytest.raises(ArgumentInvalid, match="evidence"):
        run.effect("refund", call=provider, verify=Provider(Failed(channel="API", seen=" ")))
    assert (statuses(db), provider.keys) == (["unverified"], [])


def test_nobody_is_asked_about_an_effect_that_is_known_or_has_just_been_called(me: Identity, session: Session) -> None:
    asked = Provider(Unknown())
    with me.run(session, "inv-1") as run:
        run.effect("refund", call=Provider("done"), verify=asked)
        assert run.effect("refund", call=Provider(), verify=asked) == "done"
        with pytest.raises(ValueError, match="wrong"):
            run.effect("mail", call=Provider(ValueError("wrong")), verify=asked)
    assert asked.keys == []


def test_a_key_that_the_provider_dedupes_is_sent_again_as_it_was(me: Identity, session: Session) -> None:
    provider = Provider(ConnectionError("reset"), "done")
    with pytest.raises(ConnectionError), me.run(session, "inv-1") as run:
        run.effect("refund", provider_dedupes_for=DAY, call=provider)
    with me.run(session, "inv-1") as run:
        assert run.effect("refund", provider_dedupes_for=DAY, call=provider) == "done"
    assert len(provider.keys) == 2
    assert len(set(provider.keys)) == 1


def test_a_call_that_an_earlier_attempt_did_not_make_diverges(me: Identity, session: Session) -> None:
    provider = Provider({"id": "re_7"})
    with pytest.raises(ZeroDivisionError), me.run(session, "inv-1") as run:
        run.effect("refund", step=1, args={"order": 7, "cents": 500}, call=provider)
        raise ZeroDivisionError
    with me.run(session, "inv-1") as run:
        with pytest.raises(EffectDiverged) as diverged:
            run.effect("refund", step=1, args={"order": 7, "cents": 501}, call=provider)
        earlier = diverged.value.effect
        assert (earlier.tool, earlier.args, earlier.status) == ("refund", {"order": 7, "cents": 500}, "succeeded")
        assert "Ask first for the earlier call" in diverged.value.hint
        assert run.effect(earlier.tool, step=1, args=earlier.args, call=provider) == {"id": "re_7"}
        run.effect("refund", step=2, args={"order": 7, "cents": 1}, call=provider)
    assert len(provider.keys) == 2


def test_an_effect_that_another_run_executes_is_in_flight(me: Identity, session: Session) -> None:
    late = Provider()

    def meanwhile(key: str) -> str:
        with me.run(session, "inv-2") as other:
            with pytest.raises(EffectInFlight) as held:
                other.effect("refund", intent="refund:7", call=late)
            assert held.value.effect is not None
            assert held.value.lease_expires_at == held.value.effect.lease_expires_at is not None
        return "done"

    with me.run(session, "inv-1") as run:
        assert run.effect("refund", intent="refund:7", call=meanwhile) == "done"
    assert late.keys == []


def test_a_true_outcome_is_recorded_though_the_lease_is_over(db: Rented, me: Identity, session: Session) -> None:
    def slow(key: str) -> str:
        let_the_lease_run_out(db, run.run_uid)
        return "done"

    with pytest.raises(LeaseLost), me.run(session, "inv-1") as run:
        assert run.effect("refund", call=slow) == "done"
        assert statuses(db) == ["succeeded"]


def test_an_outcome_against_what_somebody_has_seen_is_refused_and_not_hidden(
    db: Rented, me: Identity, session: Session
) -> None:
    calls = []

    def resolved_meanwhile(key: str) -> str:
        calls.append(key)
        let_the_lease_run_out(db, run.run_uid)
        (effect,) = me.list_effects(run.run_uid)
        me.resolve_effect(effect, "failed", {"channel": "phone", "seen": "nothing"})
        return "done"

    with pytest.raises(WriteOnce), me.run(session, "inv-1") as run:
        run.effect("refund", call=resolved_meanwhile)
    assert [(row["status"], row["result"]) for row in stored(db, "effects")] == [("failed", None)]
    assert len(calls) == 1


def test_an_outcome_of_an_effect_that_was_begun_again_is_refused(db: Rented, me: Identity, session: Session) -> None:
    def overtaken(key: str) -> str:
        let_the_lease_run_out(db, run.run_uid)
        with me.run(session, "inv-1") as other:
            other.effect("refund", provider_dedupes_for=DAY, call=Provider("second"))
        return "first"

    with pytest.raises(LeaseLost), me.run(session, "inv-1") as run:
        run.effect("refund", provider_dedupes_for=DAY, call=overtaken)
    assert [(row["status"], row["result"]) for row in stored(db, "effects")] == [("succeeded", "second")]
