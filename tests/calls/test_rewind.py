"""A rewind takes an invocation back: what was said stays in the log, and can be said and run again."""

from typing import Any
from uuid import UUID

import pytest

from tests.support.calls import (
    append,
    call,
    call_all,
    events,
    open_session,
    rewind_before,
    said,
    say,
    settle,
    start,
    use_tool,
)
from tests.support.harness import Connection, refused
from tests.support.rented import Rented, nothing_written


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


def rewind(app: Connection, session: UUID, to: str = "inv-1", **more: Any) -> dict[str, Any]:
    return append(app, session, "user", metadata=rewind_before(to), **more)


def test_a_rewind_names_the_first_event_it_takes_back(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session, invocation="inv-0")
        say(app, session)
        rewind(app, session)
        assert [event["rewind_to"] for event in events(app, session)] == [None, None, 2]


def test_what_was_rewound_stays_in_the_log(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session)
        before = events(app, session)
        rewind(app, session)
        assert events(app, session)[:1] == before
        assert call(app, "verify_session", session_uid=session)["intact"]


@pytest.mark.parametrize("words", ["hello", "other words"])
def test_a_rewound_turn_can_be_said_again_once(db: Rented, session: UUID, words: str) -> None:
    with db.as_app() as app:
        say(app, session, "hello")
        rewind(app, session)
        again = say(app, session, words)
        assert (again["seq"], again["outcome"]) == (3, "appended")
        assert say(app, session, words) == {**again, "outcome": "duplicate"}
        assert [event["generation"] for event in events(app, session)] == [0, 0, 1]
    with nothing_written(db), refused("23W06"), db.as_app() as app:
        say(app, session, words + "!")


def test_a_rewound_turn_can_be_run_again(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session)
        first = start(app, session, input={"n": 1})
        use_tool(app, session, "refund", attempt=1)
        settle(app, first)
        rewind(app, session, invocation_id="inv-2")
        second = start(app, session, input={"n": 2})
        say(app, session)
        assert second != first
        assert settle(app, second, attempt=2)["tools_executed"] is None
        generations = {run["run_uid"]: run["generation"] for run in call_all(app, "list_runs")}
    assert generations == {first: 0, second: 1}


def test_the_run_of_a_rewound_turn_keeps_its_outcome(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session)
        run = start(app, session)
        use_tool(app, session, "refund", attempt=1)
        outcome = settle(app, run)
        rewind(app, session)
        assert settle(app, run) == {**outcome, "outcome": "already_settled"}


def test_a_run_that_executes_is_not_taken_back(db: Rented, session: UUID) -> None:
    """What its worker still recorded would belong to nobody, and a replay would be allowed."""
    with db.as_app() as app:
        say(app, session, invocation="inv-0")
        say(app, session)
        run = start(app, session)
    for target in ("inv-0", "inv-1"):
        with nothing_written(db), refused("55W08", match="inv-1"), db.as_app() as app:
            rewind(app, session, target)
    with db.as_app() as app:
        settle(app, run, status="cancelled")
        assert rewind(app, session)["outcome"] == "appended"


def test_a_run_before_the_target_goes_on(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session, invocation="inv-0")
        start(app, session, "inv-0")
        say(app, session)
        assert rewind(app, session)["outcome"] == "appended"


def test_a_rewind_that_is_taken_back_gives_the_old_generation_back(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session, invocation="inv-0")
        first = say(app, session)
        rewind(app, session, invocation_id="r-1")
        again = say(app, session, "other words")
        rewind(app, session, "r-1")
        assert [event["generation"] for event in events(app, session)] == [0, 0, 0, 1, 0]
        told = say(app, session)
        assert (told["seq"], told["outcome"]) == (first["seq"], "duplicate")
        assert told["seq"] != again["seq"]


def test_a_turn_that_ran_again_unsaid_and_was_rewound_again_can_be_said(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session)
        rewind(app, session)
        run = start(app, session)
        append(app, session, "agent", said("hi"), invocation_id="inv-1", attempt=1)
        settle(app, run)
        rewind(app, session)
        assert say(app, session)["outcome"] == "appended"


def test_a_second_rewind_opens_a_third_generation(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        for generation in range(3):
            say(app, session, f"words {generation}")
            settle(app, start(app, session), attempt=generation + 1)
            rewind(app, session)
        say(app, session, "last words")
        generations = [event["generation"] for event in events(app, session) if event["opening"]]
        assert [event["rewind_to"] for event in events(app, session)] == [None, 1, None, 1, None, 1, None]
    assert generations == [0, 1, 2, 3]


def test_earlier_invocations_are_not_touched(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        first = say(app, session, invocation="inv-0")
        say(app, session, invocation="inv-1")
        rewind(app, session, "inv-1")
        assert say(app, session, invocation="inv-0") == {**first, "revision": 3, "outcome": "duplicate"}


def test_later_invocations_are_taken_back_as_well(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        for invocation in ("inv-1", "inv-2", "inv-3"):
            say(app, session, invocation=invocation)
        rewind(app, session, "inv-2")
        told = [say(app, session, invocation=invocation)["outcome"] for invocation in ("inv-1", "inv-2", "inv-3")]
    assert told == ["duplicate", "appended", "appended"]


@pytest.mark.parametrize("target", ["never", "x" * 2000])
def test_a_rewind_to_what_is_not_there_is_refused(db: Rented, session: UUID, target: str) -> None:
    with db.as_app() as app:
        say(app, session)
        rewind(app, session)
    with nothing_written(db), refused("22W04", match="of which this session holds nothing"), db.as_app() as app:
        rewind(app, session, target)


def test_a_repeated_rewind_with_its_event_id_is_a_duplicate(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session)
        first = rewind(app, session, event_id="r-1", invocation_id="inv-2")
    with nothing_written(db), db.as_app() as app:
        assert rewind(app, session, event_id="r-1", invocation_id="inv-2") == {**first, "outcome": "duplicate"}


def test_the_camel_case_of_javascript_is_read_too(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session)
        append(app, session, metadata={"actions": {"rewindBeforeInvocationId": "inv-1"}})
        assert say(app, session)["outcome"] == "appended"


@pytest.mark.parametrize(
    "actions",
    [
        "5",
        "null",
        "[]",
        '"inv-1"',
        "{}",
        *(f'{{"rewind_before_invocation_id": {to}}}' for to in ("null", "5", "[]", '""')),
    ],
)
def test_an_odd_shape_rewinds_nothing(db: Rented, session: UUID, actions: str) -> None:
    with db.as_app() as app:
        say(app, session)
        append(app, session, metadata=f'{{"actions": {actions}}}')
        assert [event["rewind_to"] for event in events(app, session)] == [None, None]
        assert say(app, session)["outcome"] == "duplicate"


def test_content_rewinds_nothing(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session)
        append(app, session, content=rewind_before("inv-1"))
        assert say(app, session)["outcome"] == "duplicate"


def test_the_event_id_of_a_rewound_opening_message_is_refused_loudly(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session, event_id="e-1")
        rewind(app, session)
    with nothing_written(db), refused("23W05") as refusal, db.as_app() as app:
        say(app, session, event_id="e-1")
    assert "it was rewound" in str(refusal.diag.message_detail)


def test_the_event_id_of_any_event_of_a_rewound_turn_is_refused_loudly(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session)
        append(app, session, "agent", said("hi"), event_id="e-2", invocation_id="inv-1")
        rewind(app, session)
    with nothing_written(db), refused("23W05"), db.as_app() as app:
        append(app, session, "agent", said("hi"), event_id="e-2", invocation_id="inv-1")


@pytest.mark.parametrize("invocation", ["inv-2", None])
def test_the_event_id_of_a_rewound_event_is_refused_loudly_even_where_nothing_was_opened(
    db: Rented, session: UUID, invocation: str | None
) -> None:
    with db.as_app() as app:
        say(app, session)
        append(app, session, "agent", said("hi"), event_id="e-2", invocation_id=invocation)
        rewind(app, session)
    with nothing_written(db), refused("23W05"), db.as_app() as app:
        append(app, session, "agent", said("hi"), event_id="e-2", invocation_id=invocation)


def test_a_rewind_that_belongs_to_the_turn_it_takes_back_can_be_repeated(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session)
        first = rewind(app, session, event_id="r-1", invocation_id="inv-1")
    with nothing_written(db), db.as_app() as app:
        assert rewind(app, session, event_id="r-1", invocation_id="inv-1") == {**first, "outcome": "duplicate"}


def test_no_chain_of_rewinds_moves_a_run_that_executes_to_another_generation(db: Rented, session: UUID) -> None:
    """Otherwise the invocation could be started a second time, and a call of the first worker would be hidden."""
    with db.as_app() as app:
        say(app, session)
        rewind(app, session, invocation_id="rw1")
        say(app, session)
        rewind(app, session, "rw1", invocation_id="rw2")
        run = start(app, session)
    with nothing_written(db), refused("55W08"), db.as_app() as app:
        rewind(app, session, "rw2", invocation_id="rw3")
    with db.as_app() as app:
        assert call(app, "start_run", session_uid=session, invocation_id="inv-1")["outcome"] == "busy"
        use_tool(app, session, "refund", attempt=1)
        assert settle(app, run)["tools_executed"] == ["refund"]


def test_a_run_that_executes_is_not_handed_over_by_undoing_a_rewind(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session)
        rewind(app, session, invocation_id="rw1")
        say(app, session)
        start(app, session)
    with nothing_written(db), refused("55W08"), db.as_app() as app:
        rewind(app, session, "rw1", invocation_id="rw2")


def test_a_call_that_a_partial_rewind_left_standing_is_still_counted(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        use_tool(app, session, "refund")
        say(app, session, invocation="inv-2")
        say(app, session)
        rewind(app, session, "inv-2")
        run = start(app, session)
        append(app, session, "agent", said("hi"), invocation_id="inv-1", attempt=1)
        assert call(app, "retry_verdict", run_uid=run)["tools"] == ["refund"]
        assert settle(app, run, status="failed")["tools_executed"] == ["refund"]
        assert not call(app, "replay_verdict", run_uid=run)["allowed"]


def test_the_worker_of_a_rewound_run_does_not_pass_for_one_of_the_next(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        say(app, session)
        settle(app, start(app, session), status="failed")
        rewind(app, session)
        say(app, session)
        again = call(app, "start_run", session_uid=session, invocation_id="inv-1")
    assert (again["outcome"], again["attempt"]) == ("started", 2)
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        use_tool(app, session, "refund", attempt=1)
