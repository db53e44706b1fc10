"""Two calls on one effect or its run wait for each other, and the second one answers by what the first one did."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import DictRow

from tests.support.calls import (
    ask_for,
    begin,
    call,
    effects,
    finish,
    interrupt,
    open_session,
    resolve,
    settle,
    start,
    wait_until_over,
)
from tests.support.harness import Connection, connections, wait_until_blocked
from tests.support.rented import Rented, stored


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture
def pair(db: Rented) -> Iterator[list[Connection]]:
    with connections(db, 2) as apps:
        yield apps


@pytest.fixture
def run(db: Rented) -> UUID:
    with db.as_app() as app:
        return start(app, open_session(app))


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_begin_that_waits_for_a_settlement(
    db: Rented, run: UUID, pair: list[Connection], threads: ThreadPoolExecutor, end: str
) -> None:
    settler, beginner = pair
    for app in pair:
        db.act_as(app)
    settle(settler, run)
    waiting = threads.submit(begin, beginner, run)
    wait_until_blocked(db, beginner, by=settler)
    settler.execute(end.encode())
    if end == "commit":
        with pytest.raises(psycopg.Error) as refused:
            waiting.result(timeout=20)
        assert refused.value.sqlstate == "55W03"
        beginner.rollback()
        assert (stored(db, "effects"), stored(db, "effect_calls")) == ([], [])
    else:
        assert waiting.result(timeout=20)["outcome"] == "execute"


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_settlement_that_waits_for_a_begin_names_its_tool(
    db: Rented, run: UUID, pair: list[Connection], threads: ThreadPoolExecutor, end: str
) -> None:
    settler, beginner = pair
    for app in pair:
        db.act_as(app)
    begin(beginner, run)
    waiting = threads.submit(settle, settler, run)
    wait_until_blocked(db, settler, by=beginner)
    beginner.execute(end.encode())
    assert waiting.result(timeout=20)["tools_executed"] == (["refund"] if end == "commit" else None)


def test_a_begin_that_waits_for_a_takeover_is_refused(
    db: Rented, pair: list[Connection], threads: ThreadPoolExecutor
) -> None:
    taker, beginner = pair
    with db.as_app() as app:
        session = open_session(app)
        run = start(app, session)
    for app in pair:
        db.act_as(app)
    interrupt(taker, run)
    assert ask_for(taker, session)["outcome"] == "resumed"
    waiting = threads.submit(begin, beginner, run)
    wait_until_blocked(db, beginner, by=taker)
    taker.commit()
    with pytest.raises(psycopg.Error) as refused:
        waiting.result(timeout=20)
    assert refused.value.sqlstate == "55W04"
    beginner.rollback()
    assert stored(db, "effects") == []


def test_an_attempt_that_waits_for_the_end_of_its_own_lease_begins_nothing(
    db: Rented, pair: list[Connection], threads: ThreadPoolExecutor
) -> None:
    """The lease is looked at after the lock, not before the wait."""
    holder, beginner = pair
    with db.as_app() as app:
        started = ask_for(app, open_session(app), lease="1 second")
    for app in pair:
        db.act_as(app)
    begin(holder, started["run_uid"])
    waiting = threads.submit(begin, beginner, started["run_uid"], step=1)
    wait_until_blocked(db, beginner, by=holder)
    wait_until_over(db, started["lease_expires_at"])
    holder.commit()
    with pytest.raises(psycopg.Error) as refused:
        waiting.result(timeout=20)
    assert refused.value.sqlstate == "55W04"


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("first", ["finish", "resolve"])
def test_a_late_outcome_and_a_resolution_wait_for_each_other(
    db: Rented, *, run: UUID, pair: list[Connection], threads: ThreadPoolExecutor, first: str, end: str
) -> None:
    with db.as_app() as app:
        effect = begin(app, run)["effect_uid"]
        interrupt(app, run)
    for app in pair:
        db.act_as(app)
    acts: dict[str, Callable[[Connection], DictRow]] = {
        "finish": lambda app: finish(app, effect, "succeeded", result={"by": "finish"}),
        "resolve": lambda app: resolve(app, effect, "failed"),
    }
    acts[first](pair[0])
    second = "resolve" if first == "finish" else "finish"
    waiting = threads.submit(acts[second], pair[1])
    wait_until_blocked(db, pair[1], by=pair[0])
    pair[0].execute(end.encode())
    if end == "commit":
        with pytest.raises(psycopg.Error) as refused:
            waiting.result(timeout=20)
        assert refused.value.sqlstate == "23W02"
        pair[1].rollback()
        kept = first
    else:
        waiting.result(timeout=20)
        pair[1].commit()
        kept = second
    assert stored(db, "effects")[0]["status"] == ("succeeded" if kept == "finish" else "failed")


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_finish_goes_on_while_the_run_is_cancelled(
    db: Rented, run: UUID, pair: list[Connection], threads: ThreadPoolExecutor, end: str
) -> None:
    canceller, finisher = pair
    with db.as_app() as app:
        effect = begin(app, run)["effect_uid"]
    for app in pair:
        db.act_as(app)
    call(canceller, "cancel_run", run_uid=run, reason="called off")
    assert finish(finisher, effect, result={"id": 7})["outcome"] == "finished"
    finisher.commit()
    canceller.execute(end.encode())
    with db.as_app() as app:
        assert [row["result"] for row in effects(app)] == [{"id": 7}]
    assert stored(db, "runs")[0]["status"] == ("cancelled" if end == "commit" else "running")


def test_a_begin_that_waited_for_longer_than_its_lease_executes_nothing(
    db: Rented, run: UUID, pair: list[Connection], threads: ThreadPoolExecutor
) -> None:
    """Others may have taken its run meanwhile."""
    holder, beginner = pair
    for app in pair:
        db.act_as(app)
    other = call(
        beginner, "start_run", session_uid=open_session(beginner, "s-2"), invocation_id="i", lease="300 milliseconds"
    )
    beginner.commit()
    db.act_as(beginner)
    begin(holder, run, intent="refund:7")
    waiting = threads.submit(begin, beginner, other["run_uid"], intent="refund:7")
    wait_until_blocked(db, beginner, by=holder)
    wait_until_over(db, other["lease_expires_at"])
    holder.rollback()
    with pytest.raises(psycopg.Error) as refused:
        waiting.result(timeout=20)
    assert refused.value.sqlstate == "55W04"
    beginner.rollback()
    assert stored(db, "effects") == []
