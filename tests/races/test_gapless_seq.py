"""seq stays gapless and the chain whole, whatever fails between: refusals, rollbacks, killed connections."""

import random
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import UUID

import psycopg
import pytest

from tests.support.calls import append, call, events, open_session, said, say
from tests.support.harness import Connection, connections
from tests.support.rented import Rented

WRITERS = 8
EVENTS_EACH = 15


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


def test_eight_writers_with_refusals_and_rollbacks_between_leave_no_gap(db: Rented, session: UUID) -> None:
    together = Barrier(WRITERS, timeout=30)

    def write(writer: int, app: Connection) -> list[str]:
        # Fixed per writer: which of its attempts fail does not depend on when it gets the lock.
        chance = random.Random(writer)
        kept = []
        together.wait()
        for number in range(EVENTS_EACH):
            words = f"{writer}.{number}"
            db.act_as(app)
            end = chance.choice(("commit", "commit", "rollback", "stale", "duplicate id"))
            try:
                append(
                    app,
                    session,
                    content=said(words),
                    event_id="taken" if end == "duplicate id" else words,
                    expected_revision=-1 if end == "stale" else None,
                )
            except psycopg.Error as error:
                if (end, error.sqlstate) not in (("stale", "55W02"), ("duplicate id", "23W05")):
                    raise
                app.rollback()
            else:
                assert end in ("commit", "rollback")
                app.execute(end.encode())
                if end == "commit":
                    kept.append(words)
        return kept

    with db.as_app() as app:
        append(app, session, content=said("first"), event_id="taken")
    with connections(db, WRITERS) as writers, ThreadPoolExecutor(WRITERS) as threads:
        kept = [words for written in threads.map(write, range(WRITERS), writers) for words in written]
    with db.as_app() as app:
        found = events(app, session)
        assert [event["seq"] for event in found] == list(range(1, len(kept) + 2))
        assert sorted(event["event_id"] for event in found) == sorted(["taken", *kept])
        assert call(app, "verify_session", session_uid=session)["intact"]
        assert call(app, "get_state", session_uid=session)["revision"] == len(kept) + 1
    assert 0 < len(kept) < WRITERS * EVENTS_EACH


def test_many_processes_that_open_one_invocation_store_one_message(db: Rented, session: UUID) -> None:
    together = Barrier(WRITERS, timeout=30)

    def open_it(app: Connection) -> str:
        db.act_as(app)
        together.wait()
        outcome = str(say(app, session)["outcome"])
        app.commit()
        return outcome

    with connections(db, WRITERS) as writers, ThreadPoolExecutor(WRITERS) as threads:
        outcomes = sorted(threads.map(open_it, writers))
    assert outcomes == ["appended"] + ["duplicate"] * (WRITERS - 1)


def test_many_writers_of_one_revision_have_one_winner(db: Rented, session: UUID) -> None:
    together = Barrier(WRITERS, timeout=30)

    def write(app: Connection) -> str:
        db.act_as(app)
        together.wait()
        try:
            outcome = str(append(app, session, expected_revision=0)["outcome"])
            app.commit()
        except psycopg.Error as error:
            return str(error.sqlstate)
        return outcome

    with connections(db, WRITERS) as writers, ThreadPoolExecutor(WRITERS) as threads:
        outcomes = sorted(threads.map(write, writers))
    assert outcomes == ["55W02"] * (WRITERS - 1) + ["appended"]
