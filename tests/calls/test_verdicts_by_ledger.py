"""The verdicts match the calls in the log to effects of the ledger one by one, within each attempt."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tests.support.calls import (
    SHORT,
    append,
    begin,
    call,
    call_all,
    finish,
    interrupt,
    open_session,
    refund,
    resolve,
    said,
    settle,
    start,
    take_over,
    use_tool,
    wait_until_over,
)
from tests.support.harness import Connection
from tests.support.rented import Rented, nothing_written

Verdict = tuple[bool, str, list[str]]
KEYED: dict[str, Any] = {"intent": "refund:7"}
FREE: Verdict = (True, "nothing_repeats", [])


@pytest.fixture
def retry(db: Rented, run: UUID) -> Callable[[], Verdict]:
    def verdict() -> Verdict:
        with nothing_written(db), db.as_app() as app:
            return told(app, "retry", run)

    return verdict


@pytest.fixture
def replay(db: Rented, run: UUID) -> Callable[..., Verdict]:
    """Settle the run as failed, and ask whether it may be replayed."""

    def verdict(attempt: int = 1, **more: Any) -> Verdict:
        with db.as_app() as app:
            settle(app, run, attempt=attempt, status="failed", **more)
        with nothing_written(db), db.as_app() as app:
            return told(app, "replay", run)

    return verdict


def told(connection: Connection, kind: str, run: UUID) -> Verdict:
    found = call(connection, f"{kind}_verdict", run_uid=run)
    return found["allowed"], found["reason"], found["tools"]


def blocked(verdict: Verdict, *tools: str) -> bool:
    return not verdict[0] and verdict[1] in {"tools_recorded", "tools_executed"} and verdict[2] == list(tools)


def log(app: Connection, session: UUID, tool: str = "refund", attempt: int = 1, **more: Any) -> None:
    use_tool(app, session, tool, attempt=attempt, **more)


def test_a_logged_call_whose_effect_is_keyed_by_an_intent_blocks_nothing(
    db: Rented, *, session: UUID, run: UUID, retry: Callable[[], Verdict], replay: Callable[..., Verdict]
) -> None:
    with db.as_app() as app:
        log(app, session)
        refund(app, run, **KEYED)
    assert retry() == FREE
    assert replay() == FREE


def test_a_logged_call_without_an_effect_blocks(
    db: Rented, *, session: UUID, retry: Callable[[], Verdict], replay: Callable[..., Verdict]
) -> None:
    with db.as_app() as app:
        log(app, session)
    assert retry() == (False, "tools_recorded", ["refund"])
    assert replay() == (False, "tools_executed", ["refund"])


def test_a_run_scoped_effect_blocks_a_replay_under_another_run(
    db: Rented, *, session: UUID, run: UUID, replay: Callable[..., Verdict]
) -> None:
    with db.as_app() as app:
        log(app, session)
        refund(app, run)
    assert replay() == (False, "tools_executed", ["refund"])


def test_one_effect_covers_one_call_and_not_two(
    db: Rented, *, session: UUID, run: UUID, retry: Callable[[], Verdict], replay: Callable[..., Verdict]
) -> None:
    with db.as_app() as app:
        log(app, session)
        log(app, session)
        refund(app, run, **KEYED)
    assert blocked(retry(), "refund")
    with db.as_app() as app:
        refund(app, run, intent="refund:8")
    assert retry() == FREE
    assert replay() == FREE


def test_two_tries_of_one_key_cover_one_call_and_not_two(
    db: Rented, session: UUID, run: UUID, replay: Callable[..., Verdict]
) -> None:
    with db.as_app() as app:
        log(app, session)
        log(app, session)
        refund(app, run, "failed", **KEYED)
        refund(app, run, **KEYED)
    assert replay() == (False, "tools_executed", ["refund"])


def test_an_effect_of_another_tool_covers_no_call(
    db: Rented, session: UUID, run: UUID, replay: Callable[..., Verdict]
) -> None:
    with db.as_app() as app:
        log(app, session)
        refund(app, run, tool="mail", **KEYED)
    assert replay() == (False, "tools_executed", ["refund"])


def test_calls_are_matched_within_their_attempt(
    db: Rented, *, session: UUID, run: UUID, retry: Callable[[], Verdict], replay: Callable[..., Verdict]
) -> None:
    with db.as_app() as app:
        log(app, session)
        attempt = take_over(app, session, run)
        refund(app, run, attempt=attempt, **KEYED)
    assert blocked(retry(), "refund")
    with db.as_app() as app:
        log(app, session, attempt=attempt)
    assert replay(attempt) == (False, "tools_executed", ["refund"])


def test_an_attempt_that_was_answered_from_the_ledger_is_covered_by_it(
    db: Rented, session: UUID, run: UUID, replay: Callable[..., Verdict]
) -> None:
    with db.as_app() as app:
        log(app, session)
        refund(app, run, **KEYED)
        attempt = take_over(app, session, run)
        log(app, session, attempt=attempt)
        assert begin(app, run, attempt, **KEYED)["outcome"] == "recorded"
    assert replay(attempt) == FREE


def test_a_call_answered_by_the_effect_of_another_run_is_covered_by_it(
    db: Rented, *, session: UUID, run: UUID, other_run: UUID, replay: Callable[..., Verdict]
) -> None:
    with db.as_app() as app:
        refund(app, other_run, **KEYED)
        log(app, session)
        assert begin(app, run, **KEYED)["outcome"] == "recorded"
    assert replay() == FREE


def test_what_certainly_failed_repeats_nothing(
    db: Rented, session: UUID, run: UUID, replay: Callable[..., Verdict]
) -> None:
    with db.as_app() as app:
        log(app, session)
        refund(app, run, "failed")
    assert replay() == FREE


@pytest.mark.parametrize("key", [{}, KEYED])
@pytest.mark.parametrize("how", ["begun", "unverified", "lease over"])
@pytest.mark.parametrize("replay_class", [None, "keyed", "read_only"])
def test_an_effect_nobody_knows_of_blocks_whatever_its_key_and_class(
    db: Rented, *, session: UUID, run: UUID, replay: Callable[..., Verdict], key: dict[str, Any], how: str,
    replay_class: str | None,
) -> None:  # fmt: skip
    if replay_class is not None:
        classify(db, refund=replay_class)
    with db.as_app() as app:
        log(app, session)
        begun = begin(app, run, lease=SHORT if how == "lease over" else None, **key)
        if how == "unverified":
            finish(app, begun["effect_uid"], "unverified")
    if how == "lease over":
        wait_until_over(db, begun["lease_expires_at"])
    assert replay() == (False, "unverified", ["refund"])
    if how != "begun":
        with db.as_app() as app:
            resolve(app, begun["effect_uid"], "failed")
            assert told(app, "replay", run) == FREE


def test_an_unverified_effect_of_another_run_blocks_those_who_asked_for_it(
    db: Rented, run: UUID, other_run: UUID, retry: Callable[[], Verdict]
) -> None:
    with db.as_app() as app:
        begin(app, other_run, **KEYED)
        interrupt(app, other_run)
        assert begin(app, run, **KEYED)["outcome"] == "unverified"
    assert retry() == (False, "unverified", ["refund"])


@pytest.mark.parametrize("replay_class", ["keyed", "read_only"])
@pytest.mark.parametrize("recorded", ["logged", "begun in the run", "named at settlement"])
def test_tools_that_an_operator_calls_harmless_do_not_block(
    db: Rented, *, session: UUID, run: UUID, replay: Callable[..., Verdict], replay_class: str, recorded: str
) -> None:
    classify(db, lookup=replay_class)
    with db.as_app() as app:
        append(app, session, "agent", said("done"), invocation_id="inv-1", attempt=1)
        if recorded == "logged":
            log(app, session, "lookup")
        elif recorded == "begun in the run":
            refund(app, run, tool="lookup")
    assert replay(tools_executed=["lookup"]) == FREE


def test_a_tool_of_the_class_effect_blocks_as_an_unknown_one(
    db: Rented, session: UUID, replay: Callable[..., Verdict]
) -> None:
    classify(db, refund="effect")
    with db.as_app() as app:
        log(app, session)
    assert replay() == (False, "tools_executed", ["refund"])


@pytest.mark.parametrize("whose", ["tenant", "app"])
def test_the_class_that_another_tenant_or_app_gave_the_tool_does_not_count(
    db: Rented, session: UUID, replay: Callable[..., Verdict], whose: str
) -> None:
    with db.as_operator("T2" if whose == "tenant" else "T1") as operator:
        app_name = "support" if whose == "tenant" else "sales"
        call_all(operator, "declare_tools", app_name=app_name, tools={"refund": "read_only"})
    with db.as_app() as app:
        log(app, session)
    assert replay() == (False, "tools_executed", ["refund"])


def test_a_tool_named_at_settlement_only_blocks(db: Rented, session: UUID, replay: Callable[..., Verdict]) -> None:
    with db.as_app() as app:
        append(app, session, "agent", said("done"), invocation_id="inv-1", attempt=1)
    assert replay(tools_executed=["refund"]) == (False, "tools_executed", ["refund"])


def test_a_tool_named_at_settlement_that_the_ledger_has_does_not(
    db: Rented, run: UUID, replay: Callable[..., Verdict]
) -> None:
    with db.as_app() as app:
        refund(app, run, **KEYED)
    assert replay(tools_executed=["refund"]) == FREE


def test_the_blocking_ones_are_named_sorted_and_the_others_left_out(
    db: Rented, session: UUID, run: UUID, replay: Callable[..., Verdict]
) -> None:
    classify(db, lookup="read_only")
    with db.as_app() as app:
        for tool in ("refund", "b", "lookup", "B", "a", "b"):
            log(app, session, tool)
        refund(app, run, **KEYED)
    assert replay() == (False, "tools_executed", ["B", "a", "b"])


def test_a_run_that_did_nothing_but_ask_the_ledger_has_known_tools(
    db: Rented, run: UUID, replay: Callable[..., Verdict]
) -> None:
    with db.as_app() as app:
        refund(app, run, **KEYED)
        assert settle(app, run, status="failed")["tools_executed"] == ["refund"]
        assert told(app, "replay", run) == FREE


@pytest.mark.parametrize("who", ["operator", "auditor"])
def test_operators_and_auditors_get_the_same_answer(db: Rented, session: UUID, run: UUID, who: str) -> None:
    with db.as_app() as app:
        log(app, session)
        refund(app, run, **KEYED)
        log(app, session, "mail")
    with db.as_operator() if who == "operator" else db.as_auditor() as connection:
        assert told(connection, "retry", run) == (False, "tools_recorded", ["mail"])


def test_a_run_of_another_session_under_the_same_invocation_is_not_looked_at(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        other = open_session(app, "s3")
        second = start(app, other, "inv-1")
        log(app, other)
        assert told(app, "retry", run) == (True, "no_tool_recorded", [])
        assert told(app, "retry", second) == (False, "tools_recorded", ["refund"])


def classify(db: Rented, **classes: str) -> None:
    with db.as_operator() as operator:
        call_all(operator, "declare_tools", app_name="support", tools=classes)
