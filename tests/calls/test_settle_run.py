"""settle_run: final, complete in the tools it names, and known as unknown where nothing is recorded."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.calls import append, call, open_session, said, say, settle, start, tool_response, use_tool
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


@pytest.fixture
def run(db: Rented, session: UUID) -> UUID:
    with db.as_app() as app:
        say(app, session)
        return start(app, session)


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
def test_a_run_is_settled_with_status_result_and_error(db: Rented, run: UUID, status: str) -> None:
    with db.as_app() as app:
        told = settle(app, run, status=status, result={"a\0": 1}, error={"b": 2})
    assert told == {
        "run_uid": run,
        "attempt": 1,
        "status": status,
        "outcome": "settled",
        "tools_executed": None,
        "result": {"a\0": 1},
        "error": {"b": 2},
        "lease_expires_at": None,
    }
    (row,) = stored(db, "runs")
    assert (row["status"], row["settled_at"] is not None, row["lease_holder"]) == (status, True, None)


@pytest.mark.parametrize("status", ["running", "interrupted", "awaiting", "done", "", "SUCCEEDED", None])
def test_no_other_status_settles_a_run(db: Rented, run: UUID, status: str | None) -> None:
    with nothing_written(db), refused("22W03", match="no status that settles"), db.as_app() as app:
        settle(app, run, status=status)


def test_with_nothing_but_the_users_words_recorded_the_tools_are_unknown(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        assert settle(app, run)["tools_executed"] is None


def test_an_answer_without_a_tool_means_that_none_ran(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        append(app, session, "agent", said("done"), invocation_id="inv-1", attempt=1)
        assert settle(app, run)["tools_executed"] == []


def test_the_tools_are_derived_sorted_and_each_named_once(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        for tool in ("b", "a", "b", "B"):
            use_tool(app, session, tool, attempt=1)
        answer = tool_response("c")
        append(app, session, "agent", answer, invocation_id="inv-1", attempt=1, extra_tool_calls=["hidden"])
        assert settle(app, run)["tools_executed"] == ["B", "a", "b", "hidden"]


def test_a_call_that_the_user_made_is_named_as_well(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        append(app, session, "user", said("x"), invocation_id="inv-1", repeatable=True, extra_tool_calls=["by hand"])
        assert settle(app, run)["tools_executed"] == ["by hand"]


def test_calls_of_other_invocations_and_sessions_are_not_named(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        use_tool(app, session, "other", "inv-2")
        use_tool(app, session, "none", None)
        use_tool(app, open_session(app, "s2"), "elsewhere")
        use_tool(app, session, "own", attempt=1)
        assert settle(app, run)["tools_executed"] == ["own"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["a", "b"], ["a", "b"]),
        (["b", "a", "a"], ["a", "b"]),
        (["c", "b", "a"], ["a", "b", "c"]),
    ],
)
def test_given_tools_that_name_every_recorded_one_are_kept(
    db: Rented, session: UUID, run: UUID, given: list[str], kept: list[str]
) -> None:
    with db.as_app() as app:
        use_tool(app, session, "a", attempt=1)
        use_tool(app, session, "b", attempt=1)
        assert settle(app, run, tools_executed=given)["tools_executed"] == kept


@pytest.mark.parametrize(("given", "left_out"), [([], "a, b"), (["a"], "b"), (["A", "b", "c"], "a")])
def test_given_tools_that_leave_a_recorded_one_out_are_refused(
    db: Rented, session: UUID, run: UUID, given: list[str], left_out: str
) -> None:
    with db.as_app() as app:
        use_tool(app, session, "a", attempt=1)
        use_tool(app, session, "b", attempt=1)
    with nothing_written(db), refused("23W08") as refusal, db.as_app() as app:
        settle(app, run, tools_executed=given)
    assert refusal.diag.message_detail == f"left out: {left_out}"


@pytest.mark.parametrize("given", [[], ["a"]])
def test_given_tools_are_kept_where_nothing_is_recorded(db: Rented, run: UUID, given: list[str]) -> None:
    with db.as_app() as app:
        assert settle(app, run, tools_executed=given)["tools_executed"] == given


@pytest.mark.parametrize("given", [[None], ["a", None], [""], [" "]])
def test_a_tool_without_a_name_is_refused(db: Rented, run: UUID, given: list[Any]) -> None:
    with nothing_written(db), refused("22W03", match=rf"tools_executed\[{len(given)}\]"), db.as_app() as app:
        settle(app, run, tools_executed=given)


@pytest.mark.parametrize(
    "again",
    [
        {"tools_executed": None},
        {"tools_executed": ["a", "b"]},
        {"tools_executed": ["b", "a", "b"]},
        {"attempt": 1},
        {"result": '{ "r" :1 }'},
    ],
)
def test_an_equal_settlement_again_is_told_so(db: Rented, session: UUID, run: UUID, again: dict[str, Any]) -> None:
    outcome = {"status": "failed", "result": {"r": 1}, "error": {"e": 1}}
    with db.as_app() as app:
        use_tool(app, session, "b", attempt=1)
        use_tool(app, session, "a", attempt=1)
        first = settle(app, run, **outcome)
    before = stored(db, "runs")
    with db.as_app() as app:
        assert settle(app, run, **{**outcome, **again}) == {**first, "outcome": "already_settled"}
    assert stored(db, "runs") == before


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"status": "succeeded"}, "status"),
        ({"result": {"r": 2}}, "result"),
        ({"result": None}, "result"),
        ({"error": None}, "error"),
        ({"error": "null"}, "error"),
        ({"status": "cancelled", "error": {}}, "status, error"),
    ],
)
def test_another_outcome_is_refused(db: Rented, run: UUID, change: dict[str, Any], named: str) -> None:
    outcome = {"status": "failed", "result": {"r": 1}, "error": {"e": 1}}
    with db.as_app() as app:
        settle(app, run, **outcome)
    with nothing_written(db), refused("55W03") as refusal, db.as_app() as app:
        settle(app, run, **{**outcome, **change})
    assert str(refusal.diag.message_detail).endswith(f"it differs in {named}")


def test_tools_can_not_be_given_once_they_are_settled_as_unknown(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        settle(app, run)
    with nothing_written(db), refused("23W02") as refusal, db.as_app() as app:
        settle(app, run, tools_executed=["a"])
    assert refusal.diag.message_detail == "stored: NULL; refused: {a}"


@pytest.mark.parametrize("attempt", [0, 2, -1])
def test_another_attempt_settles_nothing(db: Rented, run: UUID, attempt: int) -> None:
    with nothing_written(db), refused("55W04", match="does not hold run"), db.as_app() as app:
        settle(app, run, attempt=attempt)


def test_a_run_that_never_was_or_is_not_named_is_refused(db: Rented) -> None:
    with nothing_written(db), refused("42W05"), db.as_app() as app:
        settle(app, uuid4())
    with nothing_written(db), refused("22W03", match="run_uid is missing"), db.as_app() as app:
        call(app, "settle_run")


@pytest.mark.parametrize("field", ["result", "error"])
def test_json_that_can_not_be_stored_is_refused_by_its_path(db: Rented, run: UUID, field: str) -> None:
    with nothing_written(db), refused("22W02", match=rf"{field}\.a\[0\] can't be stored"), db.as_app() as app:
        settle(app, run, **{field: '{"a": [1e200000]}'})


def test_settling_again_leaves_the_session_as_it_is(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        say(app, session)
        run = start(app, session)
        settle(app, run)
    with nothing_written(db), db.as_app() as app:
        assert settle(app, run)["outcome"] == "already_settled"
