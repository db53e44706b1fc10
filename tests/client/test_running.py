# Generated from test_running_async.py by tools/async_to_sync.py: change that.
"""run(): how a run is begun, held, and ended, by whatever the block does."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest

from durable_pg import Durable, Identity
from durable_pg.errors import (
    ArgumentInvalid,
    EffectUnverified,
    JsonNotStorable,
    LeaseLost,
    RunAwaiting,
    RunBusy,
    RunInputDiffers,
    RunSettled,
    SessionNotFound,
)
from durable_pg.types import Session
from tests.client.leases import let_the_lease_run_out, statuses, the_run
from tests.client.provider import Provider
from tests.support.calls import said
from tests.support.rented import Rented, nothing_written, stored


@pytest.fixture
def me(db: Rented) -> Iterator[Identity]:
    with Durable.from_url(db.url("app"), max_size=3) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest.fixture
def session(me: Identity) -> Session:
    return me.open_session("support", "s-1")


def test_a_block_that_ends_settles_the_run_with_its_result(db: Rented, me: Identity, session: Session) -> None:
    with me.run(session, "inv-1", input={"order": 7}, trigger="cron") as run:
        assert (run.attempt, run.resumed, run.state, run.step, run.result) == (1, False, None, 0, None)
        assert (run.invocation_id, run.outcome.outcome) == ("inv-1", "started")
        assert the_run(db)["status"] == "running"
        run.result = {"text": "done"}
    assert run.outcome.outcome == "settled"
    row = the_run(db)
    assert (row["run_uid"], row["status"], row["result"]) == (run.run_uid, "succeeded", {"text": "done"})
    assert (row["input"], row["trigger"]) == ({"order": 7}, "cron")


def test_the_message_is_recorded_first_and_once(db: Rented, me: Identity, session: Session) -> None:
    with pytest.raises(ZeroDivisionError), me.run(session, "inv-1", message=said("refund order 7")):
        raise ZeroDivisionError
    with me.run(session, "inv-1", message=said("refund order 7")):
        pass
    (event,) = me.read_events(session)
    assert (event.author, event.opening, event.invocation_id) == ("user", True, "inv-1")


def test_nothing_is_sent_before_the_block_is_entered(db: Rented, me: Identity, session: Session) -> None:
    with nothing_written(db):
        me.run(session, "inv-1", message=said("hello"))


@pytest.mark.parametrize("error", [ValueError("wrong"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_whatever_is_raised_leaves_the_run_interrupted_and_free(
    db: Rented, me: Identity, session: Session, error: BaseException
) -> None:
    with pytest.raises(type(error)) as raised, me.run(session, "inv-1"):
        raise error
    assert raised.value is error
    row = the_run(db)
    assert (row["status"], row["lease_holder"], row["tools_executed"]) == ("interrupted", None, None)
    assert row["interrupted_with"] == {"type": type(error).__name__, "message": str(error)}
    with me.run(session, "inv-1") as run:
        assert (run.attempt, run.resumed) == (2, True)


def test_an_error_that_can_not_be_shown_is_recorded_by_its_type(db: Rented, me: Identity, session: Session) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    with pytest.raises(Mute), me.run(session, "inv-1"):
        raise Mute
    assert the_run(db)["interrupted_with"]["message"] == ""


def test_a_result_that_is_no_json_leaves_the_run_interrupted(db: Rented, me: Identity, session: Session) -> None:
    with pytest.raises(JsonNotStorable), me.run(session, "inv-1") as run:
        run.result = {1, 2}
    assert (the_run(db)["status"], the_run(db)["interrupted_with"]["type"]) == ("interrupted", "JsonNotStorable")


def test_a_settled_run_is_not_entered_and_gives_its_result(db: Rented, me: Identity, session: Session) -> None:
    with me.run(session, "inv-1") as run:
        run.result = {"text": "done"}
    with nothing_written(db), pytest.raises(RunSettled) as settled, me.run(session, "inv-1"):
        pytest.fail("entered")
    assert settled.value.run is not None
    assert (settled.value.run.status, settled.value.result) == ("succeeded", {"text": "done"})


def test_a_run_that_is_held_is_not_entered(db: Rented, me: Identity, session: Session) -> None:
    with me.run(session, "inv-1", worker="w-1"):
        with nothing_written(db), pytest.raises(RunBusy) as busy, me.run(session, "inv-1"):
            pytest.fail("entered")
        row = the_run(db)
        assert (row["lease_holder"], row["lease_expires_at"]) == ("w-1", busy.value.lease_expires_at)
        assert busy.value.run.attempt is None


def test_a_run_that_waits_for_a_person_is_not_entered(db: Rented, me: Identity, session: Session) -> None:
    started = me.start_run(session, "inv-1")
    with db.superuser() as root:
        root.execute(
            "update durable.runs set status = 'awaiting', lease_holder = null where run_uid = %s", (started.run_uid,)
        )
    with nothing_written(db), pytest.raises(RunAwaiting) as awaiting, me.run(session, "inv-1"):
        pytest.fail("entered")
    assert awaiting.value.run.status == "awaiting"


def test_what_start_run_refuses_is_raised(db: Rented, me: Identity, session: Session) -> None:
    me.start_run(session, "inv-1", input=1)
    with nothing_written(db), pytest.raises(RunInputDiffers), me.run(session, "inv-1", input=2):
        pytest.fail("entered")
    with nothing_written(db), pytest.raises(SessionNotFound), me.run(UUID(int=0), "inv-1"):
        pytest.fail("entered")
    for lease in (timedelta(0), timedelta(days=2)):
        with nothing_written(db), pytest.raises(ArgumentInvalid), me.run(session, "inv-2", lease=lease):
            pytest.fail("entered")


def test_a_run_that_is_given_up_is_failed_and_records_nothing_more(db: Rented, me: Identity, session: Session) -> None:
    provider = Provider()
    with me.run(session, "inv-1") as run:
        failed = run.fail({"why": "no such order"})
        assert (failed.outcome, failed.status) == ("settled", "failed")
        with nothing_written(db):
            for refused in (
                lambda: run.append_event("agent", 1),
                lambda: run.checkpoint(1, {}),
                lambda: run.record_step(1, state={}),
                lambda: run.effect("refund", call=provider),
                run.fail,
                lambda: run.cancel("twice"),
            ):
                with pytest.raises(RunSettled) as settled:
                    refused()
                assert settled.value.run == failed
        run.result = "not recorded"
    assert (the_run(db)["status"], the_run(db)["error"], the_run(db)["result"]) == (
        *("failed", {"why": "no such order"}, None),
    )
    assert provider.keys == []


def test_a_run_that_is_called_off_is_cancelled(db: Rented, me: Identity, session: Session) -> None:
    with pytest.raises(ZeroDivisionError), me.run(session, "inv-1") as run:
        run.cancel("the user left")
        raise ZeroDivisionError
    assert (the_run(db)["status"], the_run(db)["error"]) == ("cancelled", {"reason": "the user left"})


def test_the_holder_of_a_run_that_was_cancelled_is_told_so(db: Rented, me: Identity, session: Session) -> None:
    with pytest.raises(RunSettled, match="cancelled") as settled, me.run(session, "inv-1") as run:
        me.cancel_run(run.run_uid, "called off")
        with pytest.raises(RunSettled):
            run.append_event("agent", 1)
    assert settled.value.run is None
    assert (the_run(db)["status"], stored(db, "events")) == ("cancelled", [])


def test_once_the_lease_is_lost_every_call_and_the_end_say_so(db: Rented, me: Identity, session: Session) -> None:
    provider = Provider()
    with pytest.raises(LeaseLost), me.run(session, "inv-1") as run:
        let_the_lease_run_out(db, run.run_uid)
        with me.run(session, "inv-1") as other:
            with nothing_written(db):
                for refused in (
                    lambda: run.append_event("agent", 1),
                    lambda: run.checkpoint(1, {}),
                    lambda: run.effect("refund", call=provider),
                    run.fail,
                ):
                    with pytest.raises(LeaseLost):
                        refused()
            other.result = "of the other"
    assert (the_run(db)["status"], the_run(db)["result"], the_run(db)["attempt"]) == ("succeeded", "of the other", 2)
    assert provider.keys == []


def test_what_the_block_raises_is_raised_though_the_lease_is_lost(
    db: Rented, me: Identity, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ZeroDivisionError), me.run(session, "inv-1") as run:
        let_the_lease_run_out(db, run.run_uid)
        raise ZeroDivisionError
    assert "could not be given back: LeaseLost" in caplog.text
    assert the_run(db)["status"] == "running"


def test_the_last_of_max_attempts_settles_the_run_as_failed(db: Rented, me: Identity, session: Session) -> None:
    for status in ("interrupted", "failed"):
        with pytest.raises(ZeroDivisionError), me.run(session, "inv-1", max_attempts=2):
            raise ZeroDivisionError
        assert the_run(db)["status"] == status
    with pytest.raises(RunSettled) as settled, me.run(session, "inv-1", max_attempts=2):
        pytest.fail("entered")
    assert settled.value.run is not None
    assert settled.value.run.status == "failed"


def test_an_effect_that_waits_for_a_person_interrupts_the_run_and_is_seen_by_the_next(
    db: Rented, me: Identity, session: Session
) -> None:
    for error in (ConnectionError, EffectUnverified, EffectUnverified):
        with pytest.raises(error), me.run(session, "inv-1") as run:
            run.effect("refund", call=Provider(ConnectionError()))
    assert (statuses(db), the_run(db)["status"]) == (["unverified"], "interrupted")
