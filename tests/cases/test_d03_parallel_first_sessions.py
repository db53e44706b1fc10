"""D03, google/adk-python#4954 and #6823: first sessions opened in parallel collided on the shared state row."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from tests.support.calls import call, open_session
from tests.support.harness import Connection, connections, refused, wait_until_blocked
from tests.support.rented import Rented, nothing_written, stored

OPENERS = 20


def test_twenty_parallel_first_opens_all_succeed_and_lose_no_state(db: Rented) -> None:
    together = Barrier(OPENERS)

    def open_one(number: int, app: Connection) -> str:
        together.wait()
        db.act_as(app, user=f"U{number % 5}")
        opened = call(
            app,
            "open_session",
            app_name="demo",
            session_id=f"s{number}",
            state={f"app:k{number}": number, "user:n": number, "x": 1},
        )
        app.commit()
        return str(opened["outcome"])

    with connections(db, OPENERS) as openers, ThreadPoolExecutor(OPENERS) as threads:
        assert list(threads.map(open_one, range(OPENERS), openers)) == ["created"] * OPENERS

    (app_state,) = stored(db, "app_states")
    assert app_state["state"] == {f"k{number}": number for number in range(OPENERS)}
    user_states = stored(db, "user_states")
    assert [row["user_id"] for row in user_states] == [f"U{number}" for number in range(5)]
    for row in user_states:
        # One of this user's four openers was the last; the others' values were there before it.
        assert row["state"]["n"] in range(int(row["user_id"][1:]), OPENERS, 5)
        assert row["revision"] == 4
    sessions = stored(db, "sessions")
    assert len(sessions) == OPENERS
    assert [session["state"] for session in sessions] == [{"x": 1}] * OPENERS


def test_a_client_killed_between_its_writes_leaves_nothing(db: Rented) -> None:
    with nothing_written(db), connections(db, 1) as (victim,):
        db.act_as(victim)
        open_session(victim, state={"app:k": 1, "user:n": 1, "x": 1})
        with db.superuser() as root:
            root.execute("select pg_terminate_backend(%s)", (victim.info.backend_pid,))
        with refused("57P01"):
            open_session(victim, "s2")
    with db.as_app() as app:
        assert call(app, "open_session", app_name="support", session_id="s1", state={"y": 2})["outcome"] == "created"


def test_an_opener_that_waited_for_a_killed_one_creates_the_session(db: Rented) -> None:
    with connections(db, 2) as (victim, other), ThreadPoolExecutor() as threads:
        for app in (victim, other):
            db.act_as(app)
        open_session(victim, state={"x": "victim"})
        waiting = threads.submit(call, other, "open_session", app_name="support", session_id="s1", state={"x": "other"})
        wait_and_kill(db, victim, other)
        assert waiting.result(timeout=10)["outcome"] == "created"
        other.commit()
    assert [session["state"] for session in stored(db, "sessions")] == [{"x": "other"}]


def wait_and_kill(db: Rented, victim: Connection, waiter: Connection) -> None:
    wait_until_blocked(db, waiter, by=victim)
    with db.superuser() as root:
        root.execute("select pg_terminate_backend(%s)", (victim.info.backend_pid,))
