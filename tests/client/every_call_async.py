"""Every call of the client that an app may make once, in an order that makes sense."""

from datetime import datetime, timezone
from uuid import UUID

from durable_pg import AsyncIdentity
from durable_pg.types import RunOutcome, Session
from tests.support.calls import said, tool_call

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)


async def every_call_async(me: AsyncIdentity, name: str = "s-1") -> None:
    """Make all of them and look at what comes back."""
    await every_call_of_a_session_async(me, name)
    await every_call_of_a_run_async(me, f"{name} of runs")


async def every_call_of_a_session_async(me: AsyncIdentity, name: str) -> None:
    """Make those about sessions, events, and a run that is done at once."""
    session = await me.open_session("support", name, {"größe": 1, "user:n": 2})
    run = await me.start_run(session, f"inv-{name}", input={"order": 7})
    appended = await me.append_event(session, "user", said("refund"), invocation_id=f"inv-{name}", occurred_at=MOMENT)
    await me.append_event(
        session,
        "agent",
        tool_call("refund"),
        invocation_id=f"inv-{name}",
        extra_tool_calls=["mail"],
        attempt=run.attempt,
    )
    question, answer = await me.read_events(session)
    retry = await me.retry_verdict(run)
    settled = await me.settle_run(run, "succeeded", result={"ok": True})
    replay = await me.replay_verdict(run)
    listed = await me.list_runs(session)
    merged = await me.get_state(session=session)
    verified = await me.verify_session(session)
    sessions = await me.list_sessions("support")
    closed = await me.close_session(session)

    assert (session.outcome, run.outcome, appended.outcome) == ("created", "started", "appended")
    assert (session.revision, appended.seq, question.seq, answer.seq) == (0, 1, 1, 2)
    assert (question.content, question.occurred_at, question.opening) == (said("refund"), MOMENT, True)
    assert (answer.tool_calls, answer.extra_tool_calls, answer.opening) == (["refund"], ["mail"], False)
    assert abs(answer.occurred_at - datetime.now(timezone.utc)).total_seconds() < 300
    assert answer.hash != question.hash
    assert len(answer.hash) == 32
    assert (retry.allowed, retry.tools) == (False, ["mail", "refund"])
    assert (settled.outcome, settled.tools_executed, settled.result) == ("settled", ["mail", "refund"], {"ok": True})
    assert (replay.allowed, replay.tools) == (False, ["mail", "refund"])
    assert [(row.run_uid, row.attempt, row.input) for row in listed] == [(run.run_uid, 1, {"order": 7})]
    assert (merged.state["größe"], merged.state["user:n"], merged.revision) == (1, 2, 2)
    assert (verified.intact, verified.events_checked) == (True, 2)
    assert session.session_uid in {row.session_uid for row in sessions}
    assert closed.outcome == "closed"
    assert closed.closed_at is not None


async def every_call_of_a_run_async(me: AsyncIdentity, name: str = "s-2") -> None:
    """Make those that take a run up, hold it and call it off, with effects and checkpoints in between."""
    session = await me.open_session("support", name)
    first = await me.start_run(session, f"inv-{name}", worker="w-1", max_attempts=3)
    renewed = await me.renew_lease(first)
    begun = await me.begin_effect(first, "refund", {"größe": 7, "nul": "a\0b"}, step=1)
    interrupted = await me.interrupt_run(first, error={"why": "deployment"})
    (listed,) = await me.list_runs(session)
    run = await me.start_run(session, f"inv-{name}")
    await _effects_async(me, run, begun.effect_uid)
    await _steps_async(me, run, session)
    cancelled = await me.cancel_run(run, "called off")

    assert (renewed.outcome, interrupted.outcome, run.outcome) == ("renewed", "interrupted", "resumed")
    assert (begun.outcome, begun.status, begun.args) == ("execute", "begun", {"größe": 7, "nul": "a\0b"})
    assert (first.attempt, run.attempt) == (1, 2)
    assert renewed.lease_expires_at is not None
    assert (cancelled.outcome, cancelled.status, cancelled.error) == ("settled", "cancelled", {"reason": "called off"})
    assert (listed.status, listed.max_attempts, listed.lease_holder) == ("interrupted", 3, None)
    assert listed.interrupted_with == {"why": "deployment"}


async def _effects_async(me: AsyncIdentity, run: RunOutcome, effect: UUID) -> None:
    (waiting,) = await me.list_effects(run.run_uid, "unverified")
    resolved = await me.resolve_effect(effect, "failed", {"channel": "API", "seen": "no refund"})
    begun = await me.begin_effect(run, "refund", {"größe": 7, "nul": "a\0b"}, step=1)
    finished = await me.finish_effect(begun, "succeeded", result=["ok"])
    recorded = await me.begin_effect(run, "refund", {"nul": "a\0b", "größe": 7}, step=1)

    assert (waiting.effect_uid, waiting.attempt, waiting.outcome) == (effect, 1, None)
    assert (resolved.outcome, resolved.status, resolved.evidence["seen"]) == ("resolved", "failed", "no refund")
    assert (begun.outcome, begun.failures, finished.outcome) == ("execute", 1, "finished")
    assert (recorded.outcome, recorded.result, recorded.args_match) == ("recorded", ["ok"], True)
    assert await me.list_tools("support") == []


async def _steps_async(me: AsyncIdentity, run: RunOutcome, session: Session) -> None:
    none = await me.load_checkpoint(run)
    saved = await me.save_checkpoint(run, 1, {"n": [1.5, None]})
    recorded = await me.record_step(
        run, 2, events=[{"author": "agent", "content": 1, "occurred_at": MOMENT}], state={"n": 2}, schema_version=3
    )
    loaded = await me.load_checkpoint(run)
    (event,) = await me.read_events(session)

    assert none is None
    assert (saved.outcome, saved.step, saved.state, saved.schema_version) == ("saved", 1, {"n": [1.5, None]}, 1)
    assert (recorded.outcome, recorded.event_seqs, recorded.event_seq) == ("saved", [1], 1)
    assert loaded is not None
    assert (loaded.outcome, loaded.step, loaded.state, loaded.schema_version) == ("loaded", 2, {"n": 2}, 3)
    assert (event.attempt, event.occurred_at) == (run.attempt, MOMENT)
