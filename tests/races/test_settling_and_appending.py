"""Settling races with an appended tool call: in no interleaving is a call stored and not named."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.support.calls import append, call, events, open_session, said, say, settle, start, use_tool
from tests.support.harness import Connection, connections, wait_until_blocked
from tests.support.rented import Rented, stored

LEVELS = ("read committed", "repeatable read", "serializable")


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


@pytest.fixture
def run(db: Rented, session: UUID) -> UUID:
    """A run with one recorded call."""
    with db.as_app() as app:
        say(app, session)
        run = start(app, session)
        use_tool(app, session, "lookup", attempt=1)
    return run


@pytest.fixture
def pair(db: Rented) -> Iterator[list[Connection]]:
    with connections(db, 2) as both:
        yield both


def begin(db: Rented, app: Connection, level: str = "read committed") -> None:
    app.execute(f"set transaction isolation level {level}".encode())
    db.act_as(app)


def outcome(waiting: "Future[Any]") -> str | None:
    """Return the SQLSTATE that a call in another thread ended with, None if it went through."""
    try:
        waiting.result(timeout=20)
    except psycopg.Error as error:
        return error.sqlstate
    return None


def all_calls_are_named(db: Rented) -> bool:
    (run,) = stored(db, "runs")
    recorded = {tool for event in stored(db, "events") for tool in event["tool_calls"] + event["extra_tool_calls"]}
    return run["settled_at"] is not None and recorded <= set(run["tools_executed"])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_an_append_that_waits_for_a_settlement(
    db: Rented, *, session: UUID, run: UUID, pair: list[Connection], threads: ThreadPoolExecutor, level: str, end: str
) -> None:
    settler, appender = pair
    begin(db, settler)
    begin(db, appender, level)
    events(appender, session)  # takes the snapshot of the stricter levels
    settle(settler, run)
    waiting = threads.submit(use_tool, appender, session, "refund", attempt=1)
    wait_until_blocked(db, appender, by=settler)
    settler.execute(end.encode())
    told = outcome(waiting)
    appender.commit()
    if end == "commit":
        assert told == ("55W03" if level == "read committed" else "40001")
    else:
        assert told is None
        with db.as_app() as app:
            assert settle(app, run)["tools_executed"] == ["lookup", "refund"]
    assert all_calls_are_named(db)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("given", [None, ["lookup"], ["lookup", "refund"]])
def test_a_settlement_that_waits_for_an_append(
    db: Rented,
    *,
    session: UUID,
    run: UUID,
    pair: list[Connection],
    threads: ThreadPoolExecutor,
    level: str,
    end: str,
    given: list[str] | None,
) -> None:
    settler, appender = pair
    begin(db, settler)
    begin(db, appender, level)
    use_tool(appender, session, "refund", attempt=1)
    waiting = threads.submit(settle, settler, run, tools_executed=given)
    wait_until_blocked(db, settler, by=appender)
    appender.execute(end.encode())
    told = outcome(waiting)
    settler.commit()
    if end == "commit" and given == ["lookup"]:
        assert told == "23W08"
        with db.as_app() as app:
            settle(app, run)
    else:
        assert told is None
    (row,) = stored(db, "runs")
    assert row["tools_executed"] == (
        ["lookup", "refund"] if end == "commit" or given == ["lookup", "refund"] else ["lookup"]
    )
    assert all_calls_are_named(db)


@pytest.mark.parametrize("level", LEVELS)
def test_an_append_after_a_settlement_that_its_snapshot_does_not_show(
    db: Rented, session: UUID, run: UUID, pair: list[Connection], level: str
) -> None:
    settler, appender = pair
    begin(db, appender, level)
    events(appender, session)
    begin(db, settler)
    settle(settler, run)
    settler.commit()
    with pytest.raises(psycopg.Error) as refused:
        use_tool(appender, session, "refund", attempt=1)
    assert refused.value.sqlstate == ("55W03" if level == "read committed" else "40001")
    appender.rollback()
    assert all_calls_are_named(db)


def test_a_settlement_sees_an_append_that_was_committed_after_its_transaction_began(
    db: Rented, session: UUID, run: UUID, pair: list[Connection]
) -> None:
    settler, appender = pair
    begin(db, settler)
    events(settler, session)
    begin(db, appender)
    use_tool(appender, session, "refund", attempt=1)
    appender.commit()
    assert settle(settler, run)["tools_executed"] == ["lookup", "refund"]
    settler.commit()
    assert all_calls_are_named(db)


@pytest.mark.parametrize("given", [(None, None), (["lookup"], ["lookup", "more"]), (["lookup", "more"], ["lookup"])])
def test_a_settler_that_waits_for_another_is_told_what_is_stored(
    db: Rented,
    *,
    run: UUID,
    pair: list[Connection],
    threads: ThreadPoolExecutor,
    given: tuple[list[str] | None, list[str] | None],
) -> None:
    first, second = pair
    for app in pair:
        begin(db, app)
    settled = settle(first, run, tools_executed=given[0])
    waiting = threads.submit(settle, second, run, tools_executed=given[1])
    wait_until_blocked(db, second, by=first)
    first.commit()
    if given == (None, None):
        assert waiting.result(timeout=20) == {**settled, "outcome": "already_settled"}
    else:
        with pytest.raises(psycopg.Error) as refused:
            waiting.result(timeout=20)
        assert refused.value.sqlstate == "23W02"
        stored_one = ",".join(given[0] or [])
        assert str(refused.value.diag.message_detail).startswith(f"stored: {{{stored_one}}}; refused: ")


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("answer", ["duplicate", "other words"])
def test_a_process_that_waits_for_another_ones_opening_message(
    db: Rented, *, session: UUID, pair: list[Connection], threads: ThreadPoolExecutor, end: str, answer: str
) -> None:
    first, second = pair
    for app in pair:
        begin(db, app)
    say(first, session)
    waiting = threads.submit(say, second, session, "hello" if answer == "duplicate" else answer)
    wait_until_blocked(db, second, by=first)
    first.execute(end.encode())
    if end == "rollback":
        assert waiting.result(timeout=20)["outcome"] == "appended"
    elif answer == "duplicate":
        assert waiting.result(timeout=20)["outcome"] == "duplicate"
    else:
        assert outcome(waiting) == "23W06"
    second.commit()
    assert len(stored(db, "events")) == 1


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("given", ['{"a": 1}', '{"a": 2}'])
def test_a_starter_that_waits_for_another(
    db: Rented, *, session: UUID, pair: list[Connection], threads: ThreadPoolExecutor, end: str, given: str
) -> None:
    first, second = pair
    for app in pair:
        begin(db, app)
    run = start(first, session, input={"a": 1})
    waiting = threads.submit(call, second, "start_run", session_uid=session, invocation_id="inv-1", input=given)
    wait_until_blocked(db, second, by=first)
    first.execute(end.encode())
    if end == "rollback":
        assert waiting.result(timeout=20)["outcome"] == "started"
    elif given == '{"a": 1}':
        told = waiting.result(timeout=20)
        assert (told["run_uid"], told["outcome"]) == (run, "busy")
    else:
        assert outcome(waiting) == "23W07"
    second.commit()
    assert len(stored(db, "runs")) == 1


def test_an_append_that_waits_for_an_older_answer_keeps_the_order_of_the_locks(
    db: Rented, session: UUID, pair: list[Connection], threads: ThreadPoolExecutor
) -> None:
    first, second = pair
    for app in pair:
        begin(db, app)
    append(first, session, content=said("first"))
    waiting = threads.submit(append, second, session, content=said("second"))
    wait_until_blocked(db, second, by=first)
    first.commit()
    assert waiting.result(timeout=20)["seq"] == 2
    second.commit()
