"""D01, google/adk-python#4506: a retry of an invocation appended the user's message a second time."""

from tests.support.calls import append, events, open_session, said, say, start, tool_response
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored


def test_a_second_process_that_appends_the_same_message_is_told_duplicate(db: Rented) -> None:
    with db.as_app() as first:
        session = open_session(first)
        appended = say(first, session, "refund order 7")
    with nothing_written(db), db.as_app(login="app2") as second:
        repeated = say(second, session, "refund order 7")
    assert appended["outcome"] == "appended"
    assert repeated == {**appended, "outcome": "duplicate"}
    assert len(stored(db, "events")) == 1


def test_another_message_for_the_invocation_is_refused(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        say(app, session, "refund order 7")
    with (
        nothing_written(db),
        refused("23W06", "events_one_opening_message", match="inv-1"),
        db.as_app() as app,
    ):
        say(app, session, "refund order 8")


def test_what_else_a_user_or_a_model_adds_to_the_invocation_is_accepted(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        say(app, session, "refund order 7")
        others = [
            append(app, session, "user", tool_response("lookup"), invocation_id="inv-1"),
            append(app, session, "user", state_delta={"a": 1}, invocation_id="inv-1"),
            append(app, session, "agent", said("refund order 7"), invocation_id="inv-1"),
        ]
        opening = [event["opening"] for event in events(app, session)]
    assert [other["outcome"] for other in others] == ["appended"] * 3
    assert opening == [True, False, False, False]


def test_the_message_of_the_next_invocation_is_another_message(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        say(app, session, "yes", "inv-1")
        assert say(app, session, "yes", "inv-2")["outcome"] == "appended"


def test_a_retry_after_the_turn_has_settled_is_still_told_duplicate(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        appended = say(app, session, "refund order 7")
        run = start(app, session)
        app.execute("select durable.settle_run(run_uid => %s, attempt => 1, status => 'succeeded')", (run,))
    with nothing_written(db), db.as_app() as app:
        repeated = say(app, session, "refund order 7", expected_revision=0)
    assert repeated == {**appended, "outcome": "duplicate"}
