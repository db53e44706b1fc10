"""What counts as a repeat of a recorded event, and what never does."""

from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Json

from tests.support.calls import append, call, events, open_session, said, say, settle, start, texts, tool_response
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"retry": 2}},
        {"occurred_at": "2020-01-01 00:00+00"},
        {"event_id": "another"},
        {"state_delta": {"a": 2}},
        {"expected_revision": 0},
        {"expected_revision": 99},
    ],
)
def test_a_repeated_opening_message_is_a_duplicate_whatever_comes_with_it(
    db: Rented, session: UUID, more: dict[str, Any]
) -> None:
    with db.as_app() as app:
        first = say(app, session, event_id="e-1", metadata={"retry": 1}, state_delta={"a": 1})
        append(app, session)
    with nothing_written(db), db.as_app() as app:
        assert say(app, session, **more) == {**first, "revision": 2, "outcome": "duplicate"}


def test_key_order_spacing_and_escapes_of_the_content_make_no_difference(db: Rented, session: UUID) -> None:
    forms = ('{"role":"user","parts":[{"text":"é"}]}', '{ "parts" : [ {"text":"\\u00e9"} ] , "role" : "user" }')
    with db.as_app() as app:
        told = [append(app, session, "user", form, invocation_id="inv-1")["outcome"] for form in forms]
    assert told == ["appended", "duplicate"]


def test_a_message_that_differs_only_in_what_the_escape_hides_is_another(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session, "a\0b")
        assert say(app, session, "a\0b")["outcome"] == "duplicate"
    for words in ("ab", "a\ufffe0000b", "a\\u0000b", "a\ufffeb"):
        with nothing_written(db), refused("23W06"), db.as_app() as app:
            say(app, session, words)


def test_a_repeated_event_id_with_equal_content_is_a_duplicate(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        first = append(app, session, "agent", said("hi"), event_id="e-1", invocation_id="inv-1")
    with nothing_written(db), db.as_app() as app:
        again = append(app, session, "agent", said("hi"), event_id="e-1", invocation_id="inv-1", metadata={"n": 2})
    assert again == {**first, "outcome": "duplicate"}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"content": said("other")}, "content"),
        ({"content": None}, "content"),
        ({"author": "other"}, "author"),
        ({"invocation_id": "other"}, "invocation_id"),
        ({"invocation_id": None}, "invocation_id"),
        ({"content": said("other"), "author": "other"}, "content, author"),
    ],
)
def test_another_event_under_a_recorded_event_id_is_refused(
    db: Rented, session: UUID, change: dict[str, Any], named: str
) -> None:
    event = {"session_uid": session, "author": "agent", "content": said("hi"), "event_id": "e-1", "invocation_id": "i"}
    with db.as_app() as app:
        call(app, "append_event", **event)
    with nothing_written(db), refused("23W05", "events_event_id_once") as refusal, db.as_app() as app:
        call(app, "append_event", **{**event, **change})
    assert str(refusal.diag.message_detail).endswith(f"it differs in {named}")


def test_an_event_id_is_unique_in_its_session_alone(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        append(app, session, event_id="e-1")
        assert append(app, open_session(app, "s2"), "other", event_id="e-1")["outcome"] == "appended"


def test_events_without_an_event_id_that_open_nothing_are_never_repeats(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        told = [append(app, session, "agent", said("hi"), invocation_id="inv-1")["outcome"] for _ in range(2)]
    assert told == ["appended"] * 2


@pytest.mark.parametrize("invocation", [None, ""])
def test_without_an_invocation_id_a_text_is_never_a_repeat(db: Rented, session: UUID, invocation: str | None) -> None:
    with db.as_app() as app:
        told = [say(app, session, "yes", invocation)["outcome"] for _ in range(3)]
        found = [(event["invocation_id"], event["opening"]) for event in events(app, session)]
    assert told == ["appended"] * 3
    assert found == [(None, False)] * 3


def test_repeatable_texts_of_one_invocation_are_all_stored(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session, "go")
        told = [say(app, session, words, repeatable=True)["outcome"] for words in ("go", "go", "stop")]
        assert told == ["appended"] * 3
        assert texts(app, session) == ["go", "go", "go", "stop"]
        assert [event["opening"] for event in events(app, session)] == [True, False, False, False]


def test_a_repeatable_text_does_not_take_the_place_of_the_opening_message(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session, "live", repeatable=True)
        assert say(app, session, "opening")["outcome"] == "appended"
        assert say(app, session, "opening")["outcome"] == "duplicate"


def test_repeatable_null_means_no(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        assert [say(app, session, repeatable=None)["outcome"] for _ in range(2)] == ["appended", "duplicate"]


@pytest.mark.parametrize(
    "content",
    [
        None,
        Json(None),
        tool_response("a"),
        Json([tool_response("a"), tool_response("b")]),
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
        {"parts": []},
        {"parts": [{"text": ""}]},
    ],
)
def test_what_a_user_only_hands_on_opens_nothing_and_is_no_repeat(db: Rented, session: UUID, content: Any) -> None:
    with db.as_app() as app:
        told = [append(app, session, "user", content, invocation_id="inv-1")["outcome"] for _ in range(2)]
        assert told == ["appended"] * 2
        assert not any(event["opening"] for event in events(app, session))


@pytest.mark.parametrize(
    "content", ['"hi"', "5", '{"parts": 5}', "[[]]", '{"a": {"b": 1}}', '{"role": "user", "content": "hi"}']
)
def test_whatever_else_a_user_says_opens_the_invocation_once(db: Rented, session: UUID, content: str) -> None:
    with db.as_app() as app:
        told = [append(app, session, "user", content, invocation_id="inv-1") for _ in range(2)]
    assert [each["outcome"] for each in told] == (["appended", "duplicate"] if content != "[[]]" else ["appended"] * 2)


def test_a_text_beside_a_tools_answer_opens_the_invocation(db: Rented, session: UUID) -> None:
    content = {"parts": [*tool_response("a")["parts"], {"text": "and now this"}]}
    with db.as_app() as app:
        told = [append(app, session, "user", content, invocation_id="inv-1")["outcome"] for _ in range(2)]
    assert told == ["appended", "duplicate"]


@pytest.mark.parametrize("author", ["User", "users", "agent", "system"])
def test_only_the_author_called_user_opens_an_invocation(db: Rented, session: UUID, author: str) -> None:
    with db.as_app() as app:
        told = [append(app, session, author, said("hi"), invocation_id="inv-1")["outcome"] for _ in range(2)]
    assert told == ["appended"] * 2


def test_after_settlement_a_repeat_is_a_duplicate_and_anything_new_is_refused(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        first = say(app, session)
        answer = append(app, session, "agent", said("done"), invocation_id="inv-1", event_id="e-2")
        settle(app, start(app, session))
    with nothing_written(db), db.as_app() as app:
        assert say(app, session, attempt=7) == {**first, "revision": 2, "outcome": "duplicate"}
        again = append(app, session, "agent", said("done"), invocation_id="inv-1", event_id="e-2")
        assert again == {**answer, "outcome": "duplicate"}
    with nothing_written(db), refused("23W06"), db.as_app() as app:
        say(app, session, "something else")


def test_a_repeat_that_names_further_tool_calls_is_refused_since_they_would_be_lost(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        append(app, session, "agent", said("hi"), event_id="e-1", extra_tool_calls=["mail", "pay"])
        say(app, session)
        again = append(app, session, "agent", said("hi"), event_id="e-1", extra_tool_calls=["pay"])
        assert again["outcome"] == "duplicate"
    with nothing_written(db), refused("23W05") as refusal, db.as_app() as app:
        append(app, session, "agent", said("hi"), event_id="e-1", extra_tool_calls=["mail", "book"])
    assert "extra_tool_calls" in str(refusal.diag.message_detail)
    with nothing_written(db), refused("23W06"), db.as_app() as app:
        say(app, session, extra_tool_calls=["mail"])
