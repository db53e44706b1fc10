"""The calls about leases, effects, checkpoints and tools give back what the database recorded, over every way to it."""

from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pytest

from durable_pg import Durable, Identity
from durable_pg.errors import ArgumentInvalid, EffectNotFound, LeaseLost, RunNotFound, WriteOnce
from tests.client.leases import lease_of, let_the_lease_run_out, statuses
from tests.client.ways import every_way
from tests.support.calls import said, tool_call
from tests.support.rented import Rented, nothing_written, stored

pytestmark = every_way
LOOKED = {"channel": "API", "seen": "refund re_7"}


def test_a_lease_lasts_as_long_as_is_said_to_the_microsecond(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s-1")
    lease = timedelta(minutes=3, microseconds=7)
    run = me.start_run(session, "inv-1", worker="w-1", lease=lease, max_attempts=3)
    (row,) = stored(db, "runs")
    assert (row["lease_holder"], row["max_attempts"]) == ("w-1", 3)
    assert run.lease_expires_at == row["lease_expires_at"]
    now = datetime.now(timezone.utc)
    assert run.lease_expires_at is not None
    assert timedelta(minutes=2) < run.lease_expires_at - now < timedelta(minutes=4)
    renewed = me.renew_lease(run, lease=timedelta(hours=1))
    assert (renewed.outcome, renewed.lease_expires_at) == ("renewed", lease_of(db, run.run_uid))
    assert renewed.lease_expires_at is not None
    assert renewed.lease_expires_at - now > timedelta(minutes=50)


def test_a_run_whose_lease_is_over_is_resumed_and_the_first_worker_refused(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s-1")
    first = me.start_run(session, "inv-1", worker="w-0")
    busy = me.start_run(session, "inv-1", worker="w-0")
    let_the_lease_run_out(db, first.run_uid)
    second = me.start_run(session, "inv-1", worker="w-0")
    assert (busy.outcome, busy.attempt, busy.lease_expires_at) == ("busy", None, first.lease_expires_at)
    assert (second.outcome, second.attempt) == ("resumed", 2)
    effect = me.begin_effect(second, "refund")
    for refused in (
        lambda: me.renew_lease(first),
        lambda: me.interrupt_run(first),
        lambda: me.settle_run(first, "succeeded"),
        lambda: me.begin_effect(first, "refund"),
        lambda: me.save_checkpoint(first, 1, {}),
        lambda: me.record_step(first, 1),
        lambda: me.append_event(session, "agent", 1, invocation_id="inv-1", attempt=first.attempt),
        lambda: me.append_event(session, "agent", 1, invocation_id="inv-1"),
        lambda: me.finish_effect(effect, "succeeded", attempt=first.attempt),
    ):
        with nothing_written(db), pytest.raises(LeaseLost):
            refused()


def test_who_is_told_busy_does_not_write_by_mistake(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s-1")
    me.start_run(session, "inv-1")
    busy = me.start_run(session, "inv-1")
    for refused in (
        lambda: me.renew_lease(busy),
        lambda: me.interrupt_run(busy),
        lambda: me.begin_effect(busy, "refund"),
        lambda: me.save_checkpoint(busy, 1, {}),
        lambda: me.record_step(busy, 1),
    ):
        with nothing_written(db), pytest.raises(ArgumentInvalid, match="somebody else"):
            refused()


def test_an_interrupted_run_keeps_why_and_may_be_interrupted_twice(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s-1")
    run = me.start_run(session, "inv-1")
    outcomes = [(me.interrupt_run(run, error={"why": "a\0b"})).outcome for _ in range(2)]
    assert outcomes == ["interrupted", "already_interrupted"]
    (listed,) = me.list_runs(session)
    assert (listed.status, listed.interrupted_with, listed.lease_holder) == ("interrupted", {"why": "a\0b"}, None)


def test_an_effect_is_recorded_once_and_another_outcome_refused(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s-1")
    run = me.start_run(session, "inv-1")
    begun = me.begin_effect(run, "refund", {"order": 7}, step=3, ordinal=2, intent="refund:7", scope="tenant")
    finished = me.finish_effect(begun, "succeeded", result={"id": "re_7"})
    again = me.finish_effect(begun, "succeeded", result={"id": "re_7"})
    assert (finished.outcome, again.outcome) == ("finished", "already_finished")
    assert (finished.tool, finished.args, finished.intent, finished.scope) == (
        *("refund", {"order": 7}, "refund:7", "tenant"),
    )
    assert (finished.step, finished.ordinal, finished.user_id, finished.app_name) == (3, 2, "U1", "support")
    assert finished.finished_at is not None
    assert finished.finished_at >= finished.first_begun_at
    with nothing_written(db), pytest.raises(WriteOnce):
        me.finish_effect(begun, "failed", error="no")
    recorded = me.begin_effect(run, "refund", {"order": 7}, intent="refund:7", scope="tenant")
    assert (recorded.outcome, recorded.result, recorded.args_match) == ("recorded", {"id": "re_7"}, True)


def test_only_who_was_told_execute_has_the_attempt_of_an_effect(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s-1")
    run = me.start_run(session, "inv-1")
    me.begin_effect(run, "refund")
    second = me.begin_effect(run, "refund")
    assert second.outcome == "in_flight"
    with nothing_written(db), pytest.raises(LeaseLost):
        me.finish_effect(second, "succeeded")
    with nothing_written(db), pytest.raises(EffectNotFound):
        me.finish_effect(uuid4(), "succeeded", attempt=1)


def test_effects_are_listed_by_run_and_status(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    runs = [me.start_run(session, f"inv-{number}") for number in (1, 2)]
    mail, refund = me.begin_effect(runs[0], "mail"), me.begin_effect(runs[1], "refund")
    me.finish_effect(mail, "failed", error="no")
    assert [effect.tool for effect in me.list_effects()] == ["refund", "mail"]
    assert [effect.effect_uid for effect in me.list_effects(runs[1])] == [refund.effect_uid]
    assert [effect.status for effect in me.list_effects(status="failed")] == ["failed"]
    with pytest.raises(ArgumentInvalid):
        me.list_effects(status="done")  # type: ignore[arg-type]  # that is the point


def test_a_step_is_recorded_as_one_or_not_at_all(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s-1")
    run = me.start_run(session, "inv-1")
    begun = me.begin_effect(run, "refund", step=1)
    occurred_at = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=2)))
    step: dict[str, Any] = {
        "events": (
            {"author": "user", "content": said("hi"), "event_id": "e-1", "occurred_at": occurred_at},
            {
                "author": "agent",
                "content": tool_call("refund"),
                "event_id": "e-2",
                "state_delta": {"n": 1},
                "metadata": None,
                "extra_tool_calls": ("mail",),
            },
        ),
        "finished": [{"effect_uid": begun.effect_uid, "status": "succeeded", "result": "done"}],
        "state": {"n": 1},
    }
    unknown = {"effect_uid": str(uuid4()), "status": "failed"}
    with nothing_written(db), pytest.raises(EffectNotFound):
        me.record_step(run, 1, **{**step, "finished": [*step["finished"], unknown]})
    saved = me.record_step(run, 1, **step)
    assert (saved.outcome, saved.event_seqs, saved.event_seq, saved.step) == ("saved", [1, 2], 2, 1)
    again = me.record_step(run, 1, **step)
    assert (again.outcome, again.event_seqs) == ("already_saved", [1, 2])
    first, second = me.read_events(session)
    assert (first.occurred_at, first.attempt, second.extra_tool_calls) == (occurred_at, 1, ["mail"])
    assert (me.get_state(session=session)).state == {"n": 1}
    assert statuses(db) == ["succeeded"]


def test_json_of_a_step_comes_back_as_that_of_single_calls_does(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    run = me.start_run(session, "inv-1")
    begun = me.begin_effect(run, "refund", step=1)
    odd = {"nul": "a\0b", "lone": "\ud800", "key\0": [1e23, 10**30, {}]}
    me.record_step(
        run,
        1,
        events=[{"author": "agent", "content": odd, "metadata": odd, "state_delta": odd}],
        finished=[{"effect_uid": begun.effect_uid, "status": "succeeded", "result": odd}],
        state=odd,
    )
    (event,) = me.read_events(session)
    (effect,) = me.list_effects()
    loaded = me.load_checkpoint(run)
    assert loaded is not None
    merged = me.get_state(session=session)
    assert [event.content, event.metadata, merged.state, effect.result, loaded.state] == [odd] * 5


def test_a_run_without_a_checkpoint_has_none(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    run = me.start_run(session, "inv-1")
    assert me.load_checkpoint(run) is None
    saved = me.save_checkpoint(run, 0, None)
    loaded = me.load_checkpoint(run.run_uid)
    assert loaded is not None
    assert (loaded.state, loaded.step, loaded.outcome, saved.outcome) == (None, 0, "loaded", "saved")
    with pytest.raises(RunNotFound):
        me.load_checkpoint(uuid4())


def test_a_maintainer_finds_what_nobody_executes_and_a_worker_takes_it_up(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s-1")
    run = me.start_run(session, "inv-1", input={"order": 7})
    me.begin_effect(run, "refund")
    let_the_lease_run_out(db, run.run_uid)
    with Durable.from_url(db.url("maintainer"), max_size=1) as cron:
        maintainer = cron.maintainer()
        (found,) = [row for row in maintainer.list_resumable() if row.tenant_id == me.tenant_id]
        assert (found.user_id, found.app_name, found.session_uid) == ("U1", "support", session.session_uid)
        assert (found.run_uid, found.invocation_id, found.status) == (run.run_uid, "inv-1", "running")
        assert (found.attempt, found.unverified) == (1, 1)
        reaped = maintainer.reap_runs()
        assert (reaped.runs, reaped.effects) == (1, 1)
        assert (statuses(db, "runs"), statuses(db)) == (["interrupted"], ["unverified"])
    with me.run(found.session_uid, found.invocation_id) as resumed:
        assert (resumed.run_uid, resumed.attempt) == (run.run_uid, 2)


def test_an_operator_resolves_calls_off_and_says_what_tools_are_like(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s-1")
    run = me.start_run(session, "inv-1")
    begun = me.begin_effect(run, "refund")
    me.finish_effect(begun, "unverified")
    with Durable.from_url(db.url("operator"), max_size=1) as durable:
        operator = durable.act_as(me.tenant_id, "on-call")
        resolved = operator.resolve_effect(begun, "succeeded", LOOKED, result={"id": "re_7"})
        assert (resolved.outcome, resolved.user_id) == ("resolved", "U1")
        cancelled = operator.cancel_run(run, "the order was a test")
        assert (cancelled.outcome, cancelled.status) == ("settled", "cancelled")
        tools = operator.declare_tools("support", {"refund": "keyed", "search": "read_only"})
        assert [(tool.tool, tool.replay_class, tool.outcome) for tool in tools] == [
            *(("refund", "keyed", "written"), ("search", "read_only", "written")),
        ]
        tool = operator.set_tool("support", "search", replay_class="effect", reason="it books")
        assert (tool.replay_class, tool.outcome) == ("effect", "written")
        (kept, _) = reversed(operator.declare_tools("support", {"refund": "keyed", "search": "read_only"}))
        assert (kept.replay_class, kept.outcome) == ("effect", "kept")
    listed = me.list_tools("support")
    assert [(tool.tool, tool.replay_class, tool.outcome) for tool in listed] == [
        *(("refund", "keyed", "stored"), ("search", "effect", "stored")),
    ]
    assert {row["login"] for row in stored(db, "audit_log")} == {"operator"}
