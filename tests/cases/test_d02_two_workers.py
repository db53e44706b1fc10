"""D02, google/adk-python#4751: two servers resumed one session from stale copies and mixed their events."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from threading import Barrier
from uuid import UUID

from psycopg.errors import DatabaseError

from tests.support.calls import append, events, open_session, said, texts
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written

THREADS = 8
EVENTS_EACH = 5


def test_the_writer_with_the_stale_copy_is_refused_whatever_the_timestamps_say(db: Rented) -> None:
    now = datetime.now(timezone.utc)
    with db.as_app() as app:
        session = open_session(app)
    with db.as_app() as a:
        append(a, session, "agent", said("a1"), expected_revision=0, occurred_at=now + timedelta(seconds=1))
    for occurred_at in (now, now + timedelta(hours=1), None):
        with nothing_written(db), refused("55W02") as refusal, db.as_app(login="app2") as b:
            append(b, session, "agent", said("b1"), expected_revision=0, occurred_at=occurred_at)
        assert refusal.diag.message_detail == "expected revision 0, current revision 1"


def test_of_writers_that_never_reload_one_gets_its_events_in(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
    together = Barrier(THREADS)

    def write(name: int) -> list[str]:
        outcomes = []
        together.wait()
        for number in range(EVENTS_EACH):
            try:
                with db.as_app() as app:
                    append(app, session, "agent", said(f"{name}.{number}"), expected_revision=number)
                outcomes.append("appended")
            except DatabaseError as error:
                outcomes.append(str(error.sqlstate))
        return outcomes

    with ThreadPoolExecutor(THREADS) as threads:
        outcomes = [outcome for written in threads.map(write, range(THREADS)) for outcome in written]
    with db.as_app() as app:
        stored = events(app, session)
    assert set(outcomes) == {"appended", "55W02"}
    # Every revision was somebody's once, and nobody's twice.
    assert outcomes.count("appended") == len(stored)
    assert [event["seq"] for event in stored] == list(range(1, len(stored) + 1))


def test_writers_that_reload_and_retry_all_get_their_events_in_once_and_in_their_own_order(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
    together = Barrier(THREADS)

    def write(name: int) -> int:
        known = stale = 0
        together.wait()
        for number in range(EVENTS_EACH):
            while True:
                try:
                    with db.as_app() as app:
                        known = append(app, session, "agent", said(f"{name}.{number}"), expected_revision=known)[
                            "revision"
                        ]
                    break
                except DatabaseError as error:
                    if error.sqlstate != "55W02":
                        raise
                    stale += 1
                    known = revision(db, session)
        return stale

    with ThreadPoolExecutor(THREADS) as threads:
        stale = sum(threads.map(write, range(THREADS)))
    with db.as_app() as app:
        stored = texts(app, session)
        assert [event["seq"] for event in events(app, session)] == list(range(1, THREADS * EVENTS_EACH + 1))
    assert stale > 0, "the writers never met"
    for name in range(THREADS):
        own = [text for text in stored if text.startswith(f"{name}.")]
        assert own == [f"{name}.{number}" for number in range(EVENTS_EACH)]


def revision(db: Rented, session: UUID) -> int:
    with db.as_app() as app:
        found: int = app.execute("select revision from durable.get_state(session_uid => %s)", (session,)).fetchall()[0][
            "revision"
        ]
    return found
