"""append_event: what is stored of an event, and what is refused before anything is written."""

from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Json

from tests.support.calls import append, call, events, open_session, said, say, settle, start, tool_call, tool_response
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored

WHEN = datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=timezone.utc)


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


def test_an_event_reads_back_as_it_was_sent(db: Rented, session: UUID) -> None:
    sent = {
        "author": "agent",
        "content": said("hi"),
        "invocation_id": "inv-1",
        "event_id": "e-1",
        "metadata": {"usage": {"tokens": 3}},
        "occurred_at": WHEN,
        "repeatable": True,
        "extra_tool_calls": ["search", "search"],
    }
    with db.as_app() as app:
        told = call(app, "append_event", session_uid=session, **sent)
        (event,) = events(app, session)
    assert told == {"seq": 1, "event_id": "e-1", "revision": 1, "outcome": "appended"}
    assert {name: event[name] for name in sent} == sent


def test_an_event_without_an_id_gets_one(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        told = [append(app, session, event_id=event_id)["event_id"] for event_id in (None, "", None)]
        assert [event["event_id"] for event in events(app, session)] == told
    assert len(set(told)) == 3


def test_an_event_without_content_reads_back_as_none_and_json_null_as_null(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        append(app, session)
        append(app, session, content="null")
        found = app.execute("select content::text from durable.read_events(session_uid => %s)", (session,)).fetchall()
    assert [row["content"] for row in found] == [None, "null"]


def test_an_event_that_did_not_say_when_happened_when_it_was_recorded(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        append(app, session)
        (event,) = events(app, session)
    assert event["occurred_at"] == event["recorded_at"]
    assert abs(event["recorded_at"] - datetime.now(timezone.utc)) < timedelta(minutes=5)


def test_recorded_at_is_the_databases_own_whatever_the_caller_claims(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        append(app, session, occurred_at=WHEN)
        (event,) = events(app, session)
    assert event["occurred_at"] == WHEN
    assert event["recorded_at"] > WHEN


@pytest.mark.parametrize(
    "occurred_at", ["infinity", "-infinity", "10000-01-01 00:00+00", "0001-12-31 23:59:59.999999+00 BC"]
)
def test_a_time_that_other_languages_cannot_read_is_refused(db: Rented, session: UUID, occurred_at: str) -> None:
    with nothing_written(db), refused("22W03", match="occurred_at is") as refusal, db.as_app() as app:
        append(app, session, occurred_at=occurred_at)
    assert refusal.diag.column_name == "occurred_at"


@pytest.mark.parametrize("occurred_at", ["0001-01-01 00:00+00", "9999-12-31 23:59:59.999999+00", "1969-07-20 22:56-04"])
def test_any_time_of_the_years_1_to_9999_is_accepted_and_chained(db: Rented, session: UUID, occurred_at: str) -> None:
    with db.as_app() as app:
        append(app, session, occurred_at=occurred_at)
        assert call(app, "verify_session", session_uid=session)["intact"]


def test_seq_and_revision_count_from_one_without_gaps(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        told = [append(app, session) for _ in range(5)]
    assert [(each["seq"], each["revision"]) for each in told] == [(number, number) for number in range(1, 6)]


def test_the_database_reads_tool_calls_out_of_the_content(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        append(app, session, content=tool_call("refund"))
        append(app, session, content=Json([tool_call("a"), tool_call("a"), tool_response("b")]), extra_tool_calls=["c"])
        found = [(event["tool_calls"], event["extra_tool_calls"]) for event in events(app, session)]
    assert found == [(["refund"], []), (["a", "a"], ["c"])]


@pytest.mark.parametrize("names", [[None], ["a", None], [""], ["a", " "]])
def test_an_extra_tool_call_without_a_name_is_refused(db: Rented, session: UUID, names: list[Any]) -> None:
    with nothing_written(db), refused("22W03", match=rf"extra_tool_calls\[{len(names)}\]"), db.as_app() as app:
        append(app, session, extra_tool_calls=names)


@pytest.mark.parametrize("metadata", ["[]", "null", "1", '"a"'])
def test_metadata_that_is_no_object_is_refused(db: Rented, session: UUID, metadata: str) -> None:
    with nothing_written(db), refused("22W03", match="metadata is a JSON"), db.as_app() as app:
        append(app, session, metadata=metadata)


@pytest.mark.parametrize(
    ("field", "name"), [("author", ""), ("author", " a"), ("invocation_id", " "), ("event_id", "e ")]
)
def test_a_bad_name_is_refused(db: Rented, session: UUID, field: str, name: str) -> None:
    with nothing_written(db), refused("22W01", match=field), db.as_app() as app:
        call(app, "append_event", **{"session_uid": session, "author": "a", field: name})


def test_a_missing_author_is_refused(db: Rented, session: UUID) -> None:
    with nothing_written(db), refused("22W01", match="author is missing"), db.as_app() as app:
        call(app, "append_event", session_uid=session)


@pytest.mark.parametrize("field", ["content", "metadata", "state_delta"])
def test_json_that_can_not_be_stored_is_refused_by_its_path(db: Rented, session: UUID, field: str) -> None:
    with nothing_written(db), refused("22W02") as refusal, db.as_app() as app:
        call(app, "append_event", session_uid=session, author="a", **{field: '{"a": [0, {"b": 1e200000}]}'})
    assert str(refusal.diag.message_primary).startswith(f"{field}.a[1].b can't be stored exactly")


def test_an_event_of_a_run_carries_its_attempt(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session)
        start(app, session)
        append(app, session, invocation_id="inv-1", attempt=1)
        append(app, session, invocation_id="inv-2")
        assert [event["attempt"] for event in events(app, session)] == [None, 1, None]


@pytest.mark.parametrize(("invocation", "attempt"), [("inv-1", 2), ("inv-1", 0), ("inv-2", 1)])
def test_an_attempt_that_is_not_the_runs_is_refused(db: Rented, session: UUID, invocation: str, attempt: int) -> None:
    with db.as_app() as app:
        start(app, session)
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        append(app, session, invocation_id=invocation, attempt=attempt)


@pytest.mark.parametrize("invocation", [None, ""])
def test_an_attempt_without_its_invocation_is_refused(db: Rented, session: UUID, invocation: str | None) -> None:
    """The event would belong to no run."""
    with db.as_app() as app:
        start(app, session)
    with nothing_written(db), refused("22W03", match="invocation_id is not") as refusal, db.as_app() as app:
        append(app, session, invocation_id=invocation, attempt=1)
    assert refusal.diag.column_name == "invocation_id"


def test_nothing_more_is_recorded_for_a_settled_run(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        settle(app, start(app, session))
    with nothing_written(db), refused("55W03", match="has succeeded"), db.as_app() as app:
        append(app, session, invocation_id="inv-1")
    with db.as_app() as app:
        assert append(app, session, invocation_id="inv-2")["outcome"] == "appended"
        assert append(app, session)["outcome"] == "appended"


@pytest.mark.parametrize(("expected", "current"), [(0, 1), (2, 1), (-1, 1), (2147483647, 1)])
def test_another_revision_than_the_expected_one_is_refused(
    db: Rented, session: UUID, expected: int, current: int
) -> None:
    with db.as_app() as app:
        append(app, session)
    with nothing_written(db), refused("55W02") as refusal, db.as_app() as app:
        append(app, session, expected_revision=expected)
    assert refusal.diag.message_detail == f"expected revision {expected}, current revision {current}"


def test_a_refusal_leaves_no_gap(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        append(app, session)
        for _ in range(3):
            with refused("55W02"), app.transaction():
                append(app, session, expected_revision=0)
        assert append(app, session)["seq"] == 2


def test_a_missing_session_is_refused(db: Rented) -> None:
    with nothing_written(db), refused("22W03", match="session_uid is missing"), db.as_app() as app:
        call(app, "append_event", author="a")


def test_an_older_snapshot_is_a_serialization_failure(db: Rented, session: UUID) -> None:
    for level in ("repeatable read", "serializable"):
        with refused("40001"), db.connect("app") as behind:
            behind.execute(f"set transaction isolation level {level}".encode())
            db.act_as(behind)
            events(behind, session)
            with db.as_app() as app:
                append(app, session)
            append(behind, session)
    assert len(stored(db, "events")) == 2


def test_an_array_of_arrays_of_tool_calls_is_refused(db: Rented, session: UUID) -> None:
    """Stored, it would have made the run impossible to settle."""
    with nothing_written(db), refused("22W03", match="an array of arrays"), db.as_app() as app:
        append(app, session, extra_tool_calls=[["a", "b"], ["c", "d"]])
