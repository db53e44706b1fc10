# Generated from test_effects_async.py by tools/async_to_sync.py: change that.
"""run.effect(): what is called, recorded and raised, for each way in which a tool may end."""

from collections.abc import Iterator
from typing import Any

import pytest

from durable_pg import Durable, EffectFailed, Identity
from durable_pg.errors import EffectPayloadDiffers, EffectTimedOut, EffectUnverified, JsonNotStorable
from durable_pg.types import Session
from tests.client.leases import statuses
from tests.client.provider import Declined, Provider
from tests.support.rented import Rented, nothing_written, stored


@pytest.fixture
def me(db: Rented) -> Iterator[Identity]:
    with Durable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest.fixture
def session(me: Identity) -> Session:
    return me.open_session("support", "s-1")


def test_a_result_is_recorded_before_it_is_returned(db: Rented, me: Identity, session: Session) -> None:
    provider = Provider({"id": "re_7"})
    with me.run(session, "inv-1") as run:
        assert run.effect("refund", step=1, args={"order": 7}, call=provider) == {"id": "re_7"}
        (effect,) = stored(db, "effects")
        assert (effect["status"], effect["result"], effect["args"]) == ("succeeded", {"id": "re_7"}, {"order": 7})
        assert provider.keys == [effect["idempotency_key"]]


def test_a_plain_function_will_do(me: Identity, session: Session) -> None:
    with me.run(session, "inv-1") as run:
        assert run.effect("refund", call=lambda key: key[:4]) == "dpg_"


def test_a_recorded_result_is_returned_without_a_call(me: Identity, session: Session) -> None:
    provider = Provider({"id": 1}, {"id": 2})
    with me.run(session, "inv-1") as run:
        first = run.effect("refund", args={"order": 7}, call=provider)
        assert run.effect("refund", args={"order": 7}, call=provider) == first == {"id": 1}
        assert run.effect("refund", args={"order": 7}, ordinal=1, call=provider) == {"id": 2}
    assert len(provider.keys) == 2


def test_a_resumed_run_gets_what_the_first_attempt_recorded(me: Identity, session: Session) -> None:
    provider = Provider("done")
    with pytest.raises(ZeroDivisionError), me.run(session, "inv-1") as run:
        run.effect("refund", args={"order": 7}, call=provider)
        raise ZeroDivisionError
    with me.run(session, "inv-1") as run:
        assert run.effect("refund", args={"order": 7}, call=provider) == "done"
    assert len(provider.keys) == 1


def test_an_intent_is_done_once_across_runs(me: Identity, session: Session) -> None:
    provider = Provider("done")
    for invocation in ("inv-1", "inv-2"):
        with me.run(session, invocation) as run:
            assert run.effect("refund", args={"order": 7}, intent="refund:7", call=provider) == "done"
    assert len(provider.keys) == 1


def test_other_arguments_under_an_intent_are_refused_unless_they_may_differ(
    db: Rented, me: Identity, session: Session
) -> None:
    provider = Provider("done")
    intent: dict[str, Any] = {"intent": "refund:7", "call": provider}
    with me.run(session, "inv-1") as run:
        run.effect("refund", args={"note": "sorry"}, **intent)
        with nothing_written(db), pytest.raises(EffectPayloadDiffers):
            run.effect("refund", args={"note": "so sorry"}, **intent)
        assert run.effect("refund", args={"note": "so sorry"}, args_may_differ=True, **intent) == "done"
    assert len(provider.keys) == 1


@pytest.mark.parametrize("error", ["card declined", {"code": "declined", "nul": "a\0b"}, None])
def test_a_failure_that_the_tool_is_sure_of_is_recorded_and_may_be_begun_again(
    db: Rented, me: Identity, session: Session, error: Any
) -> None:
    provider = Provider(EffectFailed(error), "done")
    with me.run(session, "inv-1") as run:
        with pytest.raises(EffectFailed) as failed:
            run.effect("refund", call=provider)
        assert failed.value.error == error
        (recorded,) = me.list_effects(run.run_uid)
        assert recorded.status == "failed"
        assert recorded.error == (error or {"type": "EffectFailed", "message": "the effect did not happen"})
        assert run.effect("refund", call=provider) == "done"
    assert statuses(db) == ["failed", "succeeded"]
    assert len(set(provider.keys)) == 2


@pytest.mark.parametrize("failed_on", [Declined, (KeyError, Declined)])
def test_a_listed_exception_is_a_failure(db: Rented, me: Identity, session: Session, failed_on: Any) -> None:
    with me.run(session, "inv-1") as run, pytest.raises(EffectFailed) as failed:
        run.effect("refund", call=Provider(Declined("no money")), failed_on=failed_on)
    assert isinstance(failed.value.__cause__, Declined)
    assert failed.value.error == {"type": "Declined", "message": "no money"}
    assert statuses(db) == ["failed"]


def test_an_error_that_is_no_json_is_recorded_by_its_type_and_message(me: Identity, session: Session) -> None:
    with me.run(session, "inv-1") as run:
        with pytest.raises(EffectFailed):
            run.effect("refund", call=Provider(EffectFailed({"why": {1, 2}})))
        (recorded,) = me.list_effects(run.run_uid)
    assert (recorded.status, recorded.error["type"]) == ("failed", "EffectFailed")


@pytest.mark.parametrize("failed_on", [BaseException, (KeyError, KeyboardInterrupt), "Declined"])
def test_what_says_nothing_about_the_tool_can_not_be_listed(
    db: Rented, me: Identity, session: Session, failed_on: Any
) -> None:
    with me.run(session, "inv-1") as run, nothing_written(db), pytest.raises(TypeError, match="failed_on"):
        run.effect("refund", call=Provider(), failed_on=failed_on)


@pytest.mark.parametrize("error", [ConnectionError("reset"), TimeoutError(), ValueError("?"), GeneratorExit()])
def test_any_other_exception_leaves_it_unverified_and_is_raised_as_it_is(
    db: Rented, me: Identity, session: Session, error: BaseException
) -> None:
    provider = Provider(error, "done")
    with pytest.raises(type(error)) as raised, me.run(session, "inv-1") as run:
        run.effect("refund", call=provider)
    assert raised.value is error
    (effect,) = stored(db, "effects")
    assert (effect["status"], effect["error"]["type"]) == ("unverified", type(error).__name__)
    with me.run(session, "inv-1") as run, pytest.raises(EffectUnverified) as unverified:
        run.effect("refund", call=provider)
    assert unverified.value.effect.effect_uid == effect["effect_uid"]
    assert "resolve_effect" in unverified.value.hint
    assert len(provider.keys) == 1


def test_a_result_that_is_no_json_leaves_it_unverified(db: Rented, me: Identity, session: Session) -> None:
    with me.run(session, "inv-1") as run:
        with pytest.raises(JsonNotStorable, match="refund was called, but its result can't be recorded") as unfit:
            run.effect("refund", call=Provider({"at": {1}}))
        assert unfit.value.column == "result"
        (effect,) = stored(db, "effects")
        assert (effect["status"], effect["error"]["type"]) == ("unverified", "JsonNotStorable")


def test_what_can_not_be_called_begins_nothing(db: Rented, me: Identity, session: Session) -> None:
    wrong: Any = "refund"
    with me.run(session, "inv-1") as run:
        with nothing_written(db), pytest.raises(TypeError, match="a function is needed"):
            run.effect("refund", call=wrong)
        with nothing_written(db), pytest.raises(TypeError, match="a function is needed"):
            run.effect("refund", call=Provider(), verify=wrong)


def test_a_tool_that_ends_in_time_is_not_disturbed(me: Identity, session: Session) -> None:
    with me.run(session, "inv-1") as run:
        assert run.effect("refund", call=Provider("done"), timeout=10) == "done"
        with pytest.raises(TimeoutError) as own:
            run.effect("mail", call=Provider(TimeoutError("the tool's own")), timeout=10)
        assert not isinstance(own.value, EffectTimedOut)
        with pytest.raises(EffectFailed):
            run.effect("book", call=Provider(TimeoutError("its own")), timeout=10, failed_on=TimeoutError)
