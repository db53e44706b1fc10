"""One attempt at a time holds a run, however many ask for it at once."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import DictRow

from tests.support.calls import (
    SHORT,
    append,
    ask_for,
    begin,
    call,
    cancel_open_runs,
    events,
    interrupt,
    open_session,
    record,
    said,
    save,
    settle,
    start,
    wait_until_over,
)
from tests.support.harness import Connection, connections, wait_until_blocked
from tests.support.rented import Rented, stored

MANY = 20


@pytest.fixture(autouse=True)
def _nobody_elses(db: Rented) -> Iterator[None]:
    yield
    cancel_open_runs(db)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(MANY) as executor:
        yield executor


@pytest.fixture
def pair(db: Rented) -> Iterator[list[Connection]]:
    with connections(db, 2) as apps:
        for app in apps:
            db.act_as(app)
        yield apps


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


@pytest.fixture
def run(db: Rented, session: UUID) -> UUID:
    with db.as_app() as app:
        return start(app, session)


@pytest.mark.parametrize("state", ["new", "interrupted", "lease over", "reaped", "last attempt"])
def test_of_many_who_ask_for_a_run_at_once_one_gets_it(
    db: Rented, session: UUID, threads: ThreadPoolExecutor, state: str
) -> None:
    if state != "new":
        with db.as_app() as app:
            started = ask_for(app, session, lease=SHORT)
            if state in {"interrupted", "last attempt"}:
                interrupt(app, started["run_uid"])
        wait_until_over(db, started["lease_expires_at"])
    if state == "reaped":
        with db.as_maintainer() as maintainer:
            call(maintainer, "reap_runs")
    together = Barrier(MANY, timeout=30)

    def ask(app: Connection) -> DictRow:
        db.act_as(app)
        together.wait()
        told = ask_for(app, session, worker="w-0", max_attempts=1 if state == "last attempt" else None)
        app.commit()
        return told

    with connections(db, MANY) as apps:
        told = list(threads.map(ask, apps))
    outcomes = Counter(row["outcome"] for row in told)
    if state == "last attempt":
        assert outcomes == {"settled": MANY}
        assert stored(db, "runs")[0]["attempt"] == 1
    else:
        assert outcomes == {"started" if state == "new" else "resumed": 1, "busy": MANY - 1}
        assert [row["attempt"] for row in told if row["attempt"]] == [1 if state == "new" else 2]
    assert len(stored(db, "runs")) == 1


def refusal(act: Callable[[], object]) -> str | None:
    try:
        act()
    except psycopg.Error as error:
        return error.sqlstate
    return None


WRITES: dict[str, Callable[[Connection, UUID, UUID], object]] = {
    "renew": lambda app, run, _: call(app, "renew_lease", run_uid=run, attempt=1),
    "interrupt": lambda app, run, _: interrupt(app, run),
    "settle": lambda app, run, _: settle(app, run),
    "append": lambda app, _, session: append(app, session, content=said("x"), invocation_id="inv-1", attempt=1),
    "begin": lambda app, run, _: begin(app, run),
    "checkpoint": lambda app, run, _: save(app, run),
    "step": lambda app, run, _: record(app, run, events=[{"author": "agent", "content": {}}], state={}),
}


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("write", WRITES)
def test_a_write_of_the_old_attempt_that_waits_for_a_takeover(
    db: Rented, *, session: UUID, run: UUID, pair: list[Connection], threads: ThreadPoolExecutor, write: str, end: str
) -> None:
    taker, writer = pair
    interrupt(taker, run)
    assert ask_for(taker, session)["outcome"] == "resumed"
    waiting = threads.submit(refusal, lambda: WRITES[write](writer, run, session))
    wait_until_blocked(db, writer, by=taker)
    taker.execute(end.encode())
    assert waiting.result(timeout=20) == ("55W04" if end == "commit" else None)
    writer.rollback()
    assert stored(db, "runs")[0]["attempt"] == (2 if end == "commit" else 1)


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("write", WRITES)
def test_a_write_of_the_holder_that_waits_for_a_cancellation(
    db: Rented, *, session: UUID, run: UUID, pair: list[Connection], threads: ThreadPoolExecutor, write: str, end: str
) -> None:
    canceller, writer = pair
    call(canceller, "cancel_run", run_uid=run, reason="called off")
    waiting = threads.submit(refusal, lambda: WRITES[write](writer, run, session))
    wait_until_blocked(db, writer, by=canceller)
    canceller.execute(end.encode())
    assert waiting.result(timeout=20) == ("55W03" if end == "commit" else None)
    writer.rollback()
    assert stored(db, "runs")[0]["status"] == ("cancelled" if end == "commit" else "running")


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("write", WRITES)
def test_a_takeover_that_waits_for_the_last_write_of_the_old_attempt(
    db: Rented, *, session: UUID, pair: list[Connection], threads: ThreadPoolExecutor, write: str, end: str
) -> None:
    taker, writer = pair
    with db.as_app() as app:
        started = ask_for(app, session, lease="1 second")
    WRITES[write](writer, started["run_uid"], session)
    waiting = threads.submit(ask_for, taker, session)
    wait_until_blocked(db, taker, by=writer)
    wait_until_over(db, started["lease_expires_at"])
    writer.execute(end.encode())
    told = waiting.result(timeout=20)
    expected = {"renew": "busy", "settle": "settled"}.get(write, "resumed") if end == "commit" else "resumed"
    assert told["outcome"] == expected
    taker.commit()
    with db.as_app() as app:
        if write in {"append", "step"}:
            assert len(events(app, session)) == (1 if end == "commit" else 0)


def test_a_renewal_keeps_the_reaper_away(db: Rented, session: UUID, pair: list[Connection]) -> None:
    with db.as_app() as app:
        started = ask_for(app, session, lease="500 milliseconds")
    holder, _ = pair
    call(holder, "renew_lease", run_uid=started["run_uid"], attempt=1)
    wait_until_over(db, started["lease_expires_at"])
    with db.as_maintainer() as maintainer:
        # What is committed says that the lease is over; the lock says that somebody is at it.
        assert call(maintainer, "reap_runs")["runs"] == 0
    holder.commit()
    with db.as_maintainer() as maintainer:
        assert call(maintainer, "reap_runs") == {"runs": 0, "effects": 0, "skipped": 0}
    assert stored(db, "runs")[0]["status"] == "running"


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_renewal_that_waits_for_the_reaper_is_too_late(
    db: Rented, session: UUID, pair: list[Connection], threads: ThreadPoolExecutor, end: str
) -> None:
    with db.as_app() as app:
        started = ask_for(app, session, lease=SHORT)
    wait_until_over(db, started["lease_expires_at"])
    _, holder = pair
    with db.connect("maintainer") as maintainer:
        assert call(maintainer, "reap_runs")["runs"] == 1
        waiting = threads.submit(refusal, lambda: WRITES["renew"](holder, started["run_uid"], session))
        wait_until_blocked(db, holder, by=maintainer)
        maintainer.execute(end.encode())
        assert waiting.result(timeout=20) == "55W04"
    assert stored(db, "runs")[0]["status"] == ("interrupted" if end == "commit" else "running")


def test_two_reapers_share_the_work(db: Rented, session: UUID) -> None:
    with db.as_maintainer() as maintainer:
        call(maintainer, "reap_runs")  # what other tests left behind
    with db.as_app() as app:
        over = [ask_for(app, session, f"inv-{place}", lease=SHORT)["lease_expires_at"] for place in range(10)]
    wait_until_over(db, max(over))
    with db.connect("maintainer") as first, db.connect("maintainer") as second:
        assert call(first, "reap_runs", max_runs=4)["runs"] == 4
        found = call(second, "reap_runs")
        assert (found["runs"], found["skipped"]) == (6, 4)
    assert {row["status"] for row in stored(db, "runs")} == {"interrupted"}
    assert len(stored(db, "audit_log")) == 10


def test_a_run_that_is_reaped_and_taken_at_once_has_one_holder(
    db: Rented, session: UUID, pair: list[Connection], threads: ThreadPoolExecutor
) -> None:
    with db.as_app() as app:
        started = ask_for(app, session, lease=SHORT)
    wait_until_over(db, started["lease_expires_at"])
    taker, _ = pair
    with db.connect("maintainer") as maintainer:
        call(maintainer, "reap_runs")
        waiting = threads.submit(ask_for, taker, session)
        wait_until_blocked(db, taker, by=maintainer)
        maintainer.commit()
    assert waiting.result(timeout=20)["outcome"] == "resumed"
    taker.commit()
    (row,) = stored(db, "runs")
    assert (row["status"], row["attempt"]) == ("running", 2)
