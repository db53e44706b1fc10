# Generated from every_call_async.py by tools/async_to_sync.py: change that.
"""Every call of the client once, in an order that makes sense."""

from datetime import datetime, timezone

from durable_pg import Identity
from tests.calls import said, tool_call

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)


def every_call(me: Identity, name: str = "s-1") -> None:
    """Make all of them on one session and look at what comes back."""
    session = me.open_session("support", name, {"größe": 1, "user:n": 2})
    run = me.start_run(session, f"inv-{name}", input={"order": 7})
    appended = me.append_event(session, "user", said("refund"), invocation_id=f"inv-{name}", occurred_at=MOMENT)
    me.append_event(session, "agent", tool_call("refund"), invocation_id=f"inv-{name}", extra_tool_calls=["mail"])
    question, answer = me.read_events(session)
    retry = me.retry_verdict(run)
    settled = me.settle_run(run, "succeeded", result={"ok": True})
    replay = me.replay_verdict(run)
    listed = me.list_runs(session)
    merged = me.get_state(session=session)
    verified = me.verify_session(session)
    sessions = me.list_sessions("support")
    closed = me.close_session(session)

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
