"""Each method gives back what the database recorded, over every way to it."""

from dataclasses import FrozenInstanceError
from datetime import datetime, timedelta, timezone
from uuid import UUID

import pytest

from durable_pg import Identity
from durable_pg.errors import ArgumentInvalid
from tests.client.ways import every_way
from tests.support.calls import said, tool_call, tool_response
from tests.support.rented import Rented, nothing_written, stored

pytestmark = every_way


def test_a_session_is_created_and_then_found(me: Identity) -> None:
    created = me.open_session("support", "s-1", {"plan": "gold", "app:region": "eu"})
    found = me.open_session("support", "s-1", {"plan": "gold", "app:region": "eu"})
    assert (created.outcome, found.outcome) == ("created", "found")
    assert created.session_uid == found.session_uid
    assert isinstance(created.session_uid, UUID)
    assert (created.app_name, created.user_id, created.session_id) == ("support", "U1", "s-1")
    assert created.state == {"plan": "gold"}
    assert (created.revision, created.last_seq, created.closed_at) == (0, 0, None)


def test_a_session_without_a_name_is_another_one_each_time(me: Identity) -> None:
    first = me.open_session("support")
    second = me.open_session("support")
    assert first.session_uid != second.session_uid


def test_times_are_in_utc(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    assert session.created_at.utcoffset() == timedelta(0)
    assert abs(datetime.now(timezone.utc) - session.created_at) < timedelta(minutes=5)


def test_a_closed_session_is_hidden_and_its_name_free(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    closed = me.close_session(session, "done")
    again = me.close_session(session.session_uid)
    assert (closed.outcome, again.outcome) == ("closed", "already_closed")
    assert closed.closed_at == again.closed_at is not None
    assert me.list_sessions() == []
    assert (me.open_session("support", "s-1")).outcome == "created"


def test_sessions_are_listed_by_app(me: Identity) -> None:
    me.open_session("support", "s-1")
    me.open_session("sales", "s-2")
    assert {session.session_id for session in me.list_sessions()} == {"s-1", "s-2"}
    assert [session.session_id for session in me.list_sessions("sales")] == ["s-2"]


def test_state_is_merged(me: Identity) -> None:
    session = me.open_session("support", "s-1", {"a": 1, "app:b": 2, "user:c": 3})
    merged = me.get_state(session=session)
    assert merged.state == {"a": 1, "app:b": 2, "user:c": 3}
    assert merged.revision == 0
    shared = me.get_state("support")
    assert (shared.state, shared.revision) == ({"app:b": 2, "user:c": 3}, None)


def test_an_event_carries_everything_it_was_given(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    run = me.start_run(session, "inv-1")
    occurred_at = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    appended = me.append_event(
        session,
        "agent",
        tool_call("refund"),
        invocation_id="inv-1",
        event_id="evt-1",
        metadata={"trace": "abc"},
        state_delta={"last": 7},
        occurred_at=occurred_at,
        extra_tool_calls=["mail"],
        expected_revision=0,
        attempt=run.attempt,
    )
    assert (appended.seq, appended.event_id, appended.revision, appended.outcome) == (1, "evt-1", 1, "appended")
    (event,) = me.read_events(session)
    assert (event.seq, event.event_id, event.invocation_id, event.author) == (1, "evt-1", "inv-1", "agent")
    assert (event.content, event.metadata) == (tool_call("refund"), {"trace": "abc"})
    assert event.occurred_at == occurred_at
    assert (event.tool_calls, event.extra_tool_calls, event.attempt) == (["refund"], ["mail"], run.attempt)
    assert (event.opening, event.repeatable, event.generation, event.rewind_to) == (False, False, 0, None)
    assert len(event.hash) == 32
    assert (me.get_state(session=session)).state == {"last": 7}


def test_a_repeated_event_is_told_duplicate(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s-1")
    appended = me.append_event(session, "user", said("refund order 7"), invocation_id="inv-1")
    with nothing_written(db):
        repeated = me.append_event(session, "user", said("refund order 7"), invocation_id="inv-1")
    assert (appended.outcome, repeated.outcome) == ("appended", "duplicate")
    assert (repeated.seq, repeated.event_id) == (appended.seq, appended.event_id)


def test_several_user_texts_of_one_invocation_are_marked_repeatable(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    for _ in range(2):
        me.append_event(session, "user", said("and?"), invocation_id="inv-1", repeatable=True)
    assert [(event.opening, event.repeatable) for event in me.read_events(session)] == [(False, True)] * 2


def test_events_are_read_from_a_seq_a_time_or_the_end(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    for minute in range(5):
        me.append_event(session, "agent", minute, occurred_at=start + timedelta(minutes=minute))

    def read(**which: object) -> list[object]:
        return [event.content for event in me.read_events(session, **which)]  # type: ignore[arg-type]

    assert read() == [0, 1, 2, 3, 4]
    assert read(after_seq=3) == [3, 4]
    assert read(latest=2) == [3, 4]
    assert read(after_time=start + timedelta(minutes=1)) == [1, 2, 3, 4]
    assert read(after_seq=1, latest=1) == [4]
    assert read(latest=0) == []


def test_a_run_is_started_busy_and_settled_once(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    started = me.start_run(session, "inv-1", trigger="cron", input={"order": 7})
    busy = me.start_run(str(session.session_uid), "inv-1", trigger="cron", input={"order": 7})
    me.append_event(session, "agent", tool_call("refund"), invocation_id="inv-1", event_id="e-1", attempt=1)
    settled = me.settle_run(started, "succeeded", result={"text": "done"})
    again = me.settle_run(started, "succeeded", result={"text": "done"})
    retried = me.start_run(session, "inv-1", trigger="cron", input={"order": 7})
    assert [row.outcome for row in (started, busy, settled, again, retried)] == [
        *("started", "busy", "settled", "already_settled", "settled"),
    ]
    assert {row.run_uid for row in (started, busy, settled, again, retried)} == {started.run_uid}
    assert (started.status, started.attempt, started.tools_executed, started.result) == ("running", 1, None, None)
    for row in (settled, again, retried):
        assert (row.status, row.tools_executed, row.result) == ("succeeded", ["refund"], {"text": "done"})


def test_a_worker_that_is_told_busy_does_not_settle_the_run_of_the_other(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s-1")
    started = me.start_run(session, "inv-1")
    busy = me.start_run(session, "inv-1")
    with nothing_written(db), pytest.raises(ArgumentInvalid, match="somebody else") as refused:
        me.settle_run(busy, "failed")
    assert refused.value.column == "run"
    assert busy.attempt is None
    settled = me.settle_run(busy, "failed", attempt=started.attempt)
    assert settled.outcome == "settled"


def test_a_failed_run_keeps_its_error_and_the_tools_it_was_told(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    run = me.start_run(session, "inv-1")
    me.settle_run(run.run_uid, "failed", error={"kind": "timeout"}, tools_executed=["mail"], attempt=1)
    (listed,) = me.list_runs(session)
    assert (listed.run_uid, listed.session_uid, listed.user_id) == (run.run_uid, session.session_uid, "U1")
    assert (listed.invocation_id, listed.generation, listed.trigger, listed.input) == ("inv-1", 0, "user", None)
    assert (listed.status, listed.error, listed.result) == ("failed", {"kind": "timeout"}, None)
    assert listed.tools_executed == ["mail"]
    assert listed.settled_at is not None
    assert listed.settled_at >= listed.started_at


def test_verdicts_name_the_tools_in_the_way(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    run = me.start_run(session, "inv-1")
    before = me.retry_verdict(run)
    me.append_event(session, "agent", tool_call("refund"), invocation_id="inv-1", event_id="e-1", attempt=1)
    after = me.retry_verdict(run)
    me.settle_run(run, "failed")
    replay = me.replay_verdict(run)
    assert (before.allowed, before.reason, before.tools) == (True, "no_tool_recorded", [])
    assert (after.allowed, after.reason, after.tools) == (False, "tools_recorded", ["refund"])
    assert (replay.allowed, replay.reason, replay.tools) == (False, "tools_executed", ["refund"])


def test_a_session_is_verified(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    me.append_event(session, "user", tool_response("lookup"))
    verified = me.verify_session(session)
    assert (verified.intact, verified.events_checked, verified.broken_seq, verified.problem) == (True, 1, None, None)


def test_ten_megabytes_come_back(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    content = {"text": "größer 🐘 \x00 " * 600_000}
    me.append_event(session, "agent", content)
    (event,) = me.read_events(session)
    assert event.content == content


def test_a_row_is_frozen(me: Identity) -> None:
    session = me.open_session("support", "s-1")
    with pytest.raises(FrozenInstanceError):
        session.revision = 7  # type: ignore[misc]


def test_the_identity_of_a_view_is_that_of_every_row(db: Rented, me: Identity) -> None:
    me.open_session("support", "s-1")
    assert (me.tenant_id, me.user_id) == (db.tenant("T1"), "U1")
    assert [(row["tenant_id"], row["user_id"]) for row in stored(db, "sessions")] == [(db.tenant("T1"), "U1")]
