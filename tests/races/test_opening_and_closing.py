"""Openers of one name, and closing while others write."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import psycopg
import pytest

from tests.support.calls import append, call, open_session, settle, start
from tests.support.harness import Connection, connections, wait_until_blocked
from tests.support.rented import Rented, stored


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture
def pair(db: Rented) -> Iterator[list[Connection]]:
    with connections(db, 2) as both:
        for app in both:
            db.act_as(app)
        yield both


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


def sqlstate(waiting: "object") -> str | None:
    try:
        waiting.result(timeout=20)  # type: ignore[attr-defined]
    except psycopg.Error as error:
        return error.sqlstate
    return None


@pytest.mark.parametrize("known_app", [True, False])
@pytest.mark.parametrize("state", [None, {"app:a": 1, "user:a": 1, "a": 1}])
def test_of_two_openers_of_a_name_the_second_waits_and_finds(
    db: Rented, pair: list[Connection], threads: ThreadPoolExecutor, known_app: bool, state: dict[str, int] | None
) -> None:
    if known_app:
        with db.as_app() as app:
            open_session(app, "earlier")
    first, second = pair
    created = call(first, "open_session", app_name="support", session_id="s1", state=state)
    waiting = threads.submit(call, second, "open_session", app_name="support", session_id="s1", state=state)
    wait_until_blocked(db, second, by=first)
    first.commit()
    assert waiting.result(timeout=20) == {**created, "outcome": "found"}
    second.commit()
    assert len(stored(db, "sessions")) == 1 + known_app


def test_of_two_openers_with_different_states_the_second_is_refused(
    db: Rented, pair: list[Connection], threads: ThreadPoolExecutor
) -> None:
    first, second = pair
    open_session(first, state={"a": 1})
    waiting = threads.submit(open_session, second, state={"a": 2})
    wait_until_blocked(db, second, by=first)
    first.commit()
    assert sqlstate(waiting) == "23W09"
    second.rollback()
    assert [row["state"] for row in stored(db, "sessions")] == [{"a": 1}]


def test_an_opener_under_an_older_snapshot_is_a_serialization_failure(db: Rented, pair: list[Connection]) -> None:
    first, second = pair
    second.rollback()
    second.execute("set transaction isolation level repeatable read")
    db.act_as(second)
    call(second, "get_state", app_name="support")
    open_session(first)
    first.commit()
    with pytest.raises(psycopg.errors.SerializationFailure):
        open_session(second)


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_an_append_that_waits_for_a_close(
    db: Rented, session: UUID, pair: list[Connection], threads: ThreadPoolExecutor, end: str
) -> None:
    closer, writer = pair
    call(closer, "close_session", session_uid=session)
    waiting = threads.submit(append, writer, session)
    wait_until_blocked(db, writer, by=closer)
    closer.execute(end.encode())
    assert sqlstate(waiting) == ("55W01" if end == "commit" else None)
    writer.commit()
    assert len(stored(db, "events")) == (end == "rollback")


def test_a_close_that_waits_for_an_append_closes_after_it(
    db: Rented, session: UUID, pair: list[Connection], threads: ThreadPoolExecutor
) -> None:
    closer, writer = pair
    append(writer, session)
    waiting = threads.submit(call, closer, "close_session", session_uid=session)
    wait_until_blocked(db, closer, by=writer)
    writer.commit()
    closed = waiting.result(timeout=20)
    closer.commit()
    assert (closed["outcome"], closed["last_seq"]) == ("closed", 1)


def test_a_close_that_waits_for_a_close_is_told_so(
    db: Rented, session: UUID, pair: list[Connection], threads: ThreadPoolExecutor
) -> None:
    first, second = pair
    closed = call(first, "close_session", session_uid=session, reason="first")
    waiting = threads.submit(call, second, "close_session", session_uid=session, reason="second")
    wait_until_blocked(db, second, by=first)
    first.commit()
    assert waiting.result(timeout=20) == {**closed, "outcome": "already_closed"}


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_start_that_waits_for_a_close(
    db: Rented, session: UUID, pair: list[Connection], threads: ThreadPoolExecutor, end: str
) -> None:
    closer, starter = pair
    call(closer, "close_session", session_uid=session)
    waiting = threads.submit(start, starter, session)
    wait_until_blocked(db, starter, by=closer)
    closer.execute(end.encode())
    assert sqlstate(waiting) == ("55W01" if end == "commit" else None)


def test_a_settlement_that_waits_for_a_close_goes_through(
    db: Rented, session: UUID, pair: list[Connection], threads: ThreadPoolExecutor
) -> None:
    with db.as_app() as app:
        run = start(app, session)
    closer, settler = pair
    call(closer, "close_session", session_uid=session)
    waiting = threads.submit(settle, settler, run)
    wait_until_blocked(db, settler, by=closer)
    closer.commit()
    assert waiting.result(timeout=20)["outcome"] == "settled"


def test_an_open_that_waits_for_a_close_of_that_name_finds_nothing_to_wait_for(
    db: Rented, session: UUID, pair: list[Connection], threads: ThreadPoolExecutor
) -> None:
    closer, opener = pair
    call(closer, "close_session", session_uid=session)
    # The row is still open to everybody else, and finding it takes no lock.
    assert open_session(opener) == session
    closer.commit()
    assert open_session(opener) != session


def test_a_session_that_is_closed_while_its_opener_reads_it_back_is_opened_anew(
    db: Rented, threads: ThreadPoolExecutor
) -> None:
    """The narrowest race, held open by a trigger that waits for a lock after the opener's INSERT did nothing."""
    with db.superuser() as root:
        root.execute(
            "create function public.hold() returns trigger language plpgsql as"
            " $$begin perform pg_advisory_xact_lock(7); return null; end$$"
        )
        root.execute("grant usage on schema public to durable_engine")
        root.execute("create trigger hold after insert on durable.sessions execute function public.hold()")
    try:
        with connections(db, 2) as (first, second), db.server.connect(db.name) as gate:
            for app in (first, second):
                db.act_as(app)
            session = open_session(first)
            waiting = threads.submit(open_session, second)
            # first holds the name and, through the trigger, the lock
            wait_until_blocked(db, second, by=first)
            gate_waits = threads.submit(gate.execute, "select pg_advisory_lock(7)")
            wait_until_blocked(db, gate, by=first)
            first.commit()
            gate_waits.result(timeout=20)
            wait_until_blocked(db, second, by=gate)
            with db.as_app() as app:
                call(app, "close_session", session_uid=session)
            gate.execute("select pg_advisory_unlock(7)")
            assert waiting.result(timeout=20) != session
    finally:
        with db.superuser() as root:
            root.execute("drop function public.hold() cascade")
