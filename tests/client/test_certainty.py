"""What looks certain and is not: no call of a tool follows from it."""

from collections.abc import Iterator
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest

from durable_pg import Durable, EffectFailed, Failed, Identity, Succeeded
from durable_pg.errors import EffectInFlight, EffectUnverified, WriteOnce
from durable_pg.types import Session
from tests.client.leases import statuses
from tests.client.provider import LOOK, Declined, Provider, leave_unverified
from tests.support.rented import Rented, stored

DAY = timedelta(days=1)


@pytest.fixture
def me(db: Rented) -> Iterator[Identity]:
    with Durable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest.fixture
def session(me: Identity) -> Session:
    return me.open_session("support", "s-1")


@pytest.mark.parametrize("recorded", ["succeeded", "failed"])
def test_what_a_verifier_saw_happen_is_not_called_whatever_is_recorded_meanwhile(
    db: Rented, me: Identity, session: Session, recorded: Any
) -> None:
    leave_unverified(me, session)
    provider = Provider()

    def verify(_: str) -> Succeeded:
        (effect,) = me.list_effects(status="unverified")
        me.resolve_effect(effect, recorded, LOOK)
        return Succeeded({"id": "re_7"}, **LOOK)

    with pytest.raises(WriteOnce) if recorded == "failed" else nullcontext(), me.run(session, "inv-1") as run:
        assert run.effect("refund", call=provider, verify=verify) is None
    assert (statuses(db), provider.keys) == ([recorded], [])


def test_a_verifier_that_saw_nothing_is_told_what_is_recorded_meanwhile(
    db: Rented, me: Identity, session: Session
) -> None:
    leave_unverified(me, session)
    provider = Provider()

    def verify(_: str) -> Failed:
        (effect,) = me.list_effects(status="unverified")
        me.resolve_effect(effect, "succeeded", LOOK, result=7)
        return Failed(channel="API", seen="none")

    with me.run(session, "inv-1") as run:
        assert run.effect("refund", call=provider, verify=verify) == 7
    assert (statuses(db), provider.keys) == (["succeeded"], [])


def test_a_look_from_before_another_begin_is_refused(db: Rented, me: Identity, session: Session) -> None:
    given: dict[str, Any] = {"intent": "refund:7", "provider_dedupes_for": DAY}
    leave_unverified(me, session, **given)
    provider = Provider()
    looked = (me.list_effects(status="unverified"))[0]
    with pytest.raises(ConnectionError), me.run(session, "inv-1") as run:
        run.effect("refund", **given, call=Provider(ConnectionError("reset")))
    with pytest.raises(EffectInFlight):
        me.resolve_effect(looked, "failed", LOOK)
    assert (statuses(db), provider.keys) == (["unverified"], [])


def test_a_refusal_of_the_second_call_leaves_the_first_one_open(db: Rented, me: Identity, session: Session) -> None:
    given: dict[str, Any] = {"intent": "refund:7", "provider_dedupes_for": DAY}
    leave_unverified(me, session, **given)
    provider = Provider(Declined("no"))
    with pytest.raises(EffectUnverified) as unverified, me.run(session, "inv-1") as run:
        run.effect("refund", **given, call=provider, failed_on=Declined)
    assert isinstance(unverified.value.__cause__, Declined)
    assert (statuses(db), len(provider.keys)) == (["unverified"], 1)


def test_an_effect_inside_another_says_nothing_of_the_outer_one(db: Rented, me: Identity, session: Session) -> None:
    """The flight is booked when the hotel is full."""
    with pytest.raises(EffectFailed), me.run(session, "inv-1") as run:

        def flight(_: str) -> Any:
            return run.effect("hotel", call=Provider(EffectFailed("full")))

        run.effect("flight", call=flight)
    assert {row["tool"]: row["status"] for row in stored(db, "effects")} == {"flight": "unverified", "hotel": "failed"}


def test_the_step_is_the_one_after_the_last_checkpoint(db: Rented, me: Identity, session: Session) -> None:
    provider = Provider()
    with me.run(session, "inv-1") as run:
        for done in (1, 2, 3):
            run.effect("mail", call=provider)
            run.checkpoint(done, {"done": done})
    assert sorted(row["step"] for row in stored(db, "effects")) == [1, 2, 3]
    assert len(provider.keys) == 3


def test_a_call_that_takes_no_key_is_refused_before_anything_is_begun(
    db: Rented, me: Identity, session: Session
) -> None:
    keyless: Any = lambda: None  # noqa: E731
    with me.run(session, "inv-1") as run, pytest.raises(TypeError, match="one argument"):
        run.effect("mail", call=keyless)
    assert stored(db, "effects") == []
