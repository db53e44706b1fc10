r"""D05, aegra/aegra#227: a tool returned \u0000, the insert was refused and the run ended in error."""

import psycopg
import pytest

from tests.support.calls import append, call, events, open_session, said, settle, start
from tests.support.harness import refused, value
from tests.support.rented import Rented, nothing_written

RESPONSE = {"out": "a\0b", "nested": ["\0"], "\0key": 1}


def test_nul_in_a_tools_answer_and_in_a_text_reads_back_equal_and_the_next_event_goes_in(db: Rented) -> None:
    contents = [
        {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "search", "response": RESPONSE}}]},
        {"parts": [{"text": "x\0y"}]},
        {"parts": [{"text": "clean"}]},
    ]
    with db.as_app() as app:
        session = open_session(app)
        for content in contents:
            append(app, session, "agent", content, metadata=RESPONSE)
        read = events(app, session)
    assert [event["content"] for event in read] == contents
    assert [event["metadata"] for event in read] == [RESPONSE] * 3


def test_nul_in_state_reads_back_equal(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app, state={"first\0": ["\0"], "user:a\0": "b\0"})
        append(app, session, state_delta={"k\0": "v", "app:\0": "\0"})
        state = value(app, "select state from durable.get_state(session_uid => %s)", session)
    assert state == {"first\0": ["\0"], "user:a\0": "b\0", "k\0": "v", "app:\0": "\0"}


def test_nul_in_a_runs_input_result_and_error_reads_back_equal(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        run = start(app, session, input=RESPONSE)
        settled = settle(app, run, status="failed", result=RESPONSE, error={"\0": "\0"})
        listed = call(app, "list_runs", session_uid=session)
    assert (settled["result"], settled["error"]) == (RESPONSE, {"\0": "\0"})
    assert (listed["input"], listed["result"], listed["error"]) == (RESPONSE, RESPONSE, {"\0": "\0"})


@pytest.mark.parametrize("argument", ["author", "invocation_id", "event_id"])
def test_no_name_can_carry_nul(db: Rented, argument: str) -> None:
    with db.as_app() as app:
        session = open_session(app)
    # The protocol ends a text at NUL, so the driver refuses before anything is sent.
    with nothing_written(db), pytest.raises(psycopg.DataError, match="NUL"), db.as_app() as app:
        call(app, "append_event", **{"session_uid": session, "author": "agent", argument: "s\0"})


def test_no_session_id_can_carry_nul(db: Rented) -> None:
    with nothing_written(db), pytest.raises(psycopg.DataError, match="NUL"), db.as_app() as app:
        open_session(app, "s\0")
    with nothing_written(db), refused("54000"), db.as_app() as app:
        app.execute("select durable.open_session(app_name => 'support', session_id => 's' || chr(0))")


def test_the_turn_goes_on_in_the_same_transaction(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        append(app, session, "agent", {"parts": [{"text": "x\0y"}]})
        append(app, session, "agent", said("clean"))
        assert [event["seq"] for event in events(app, session)] == [1, 2]
