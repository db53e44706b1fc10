"""Calls on one session lock its row first, then the run, then the shared states: mixed at random, none deadlocks."""

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import UUID

import psycopg

from tests.support.calls import call, events, open_session, say, settle, start, use_tool
from tests.support.harness import Connection, connections
from tests.support.rented import Rented, stored

THREADS = 8
CALLS_EACH = 120
# Each call is its own transaction; these are the answers that another caller's luck may give it.
HARMLESS = {"55W02", "55W03", "23W02", "23W08", "23W06"}


def one_call(app: Connection, chance: random.Random, session: UUID, run: UUID) -> str:
    delta = {"app:n": chance.random(), "user:n": chance.random(), "n": chance.random()}
    calls: tuple[Callable[[], object], ...] = (
        lambda: say(app, session, invocation=f"inv-{chance.randrange(5)}", state_delta=delta)["outcome"],
        lambda: use_tool(app, session, chance.choice("abc"), attempt=1, state_delta=delta)["outcome"],
        lambda: call(app, "start_run", session_uid=session, invocation_id=f"inv-{chance.randrange(5)}")["outcome"],
        lambda: call(app, "open_session", app_name="support", session_id=f"s{chance.randrange(5)}")["outcome"],
        lambda: say(app, open_session(app, f"new-{chance.random()}", state=delta), state_delta=delta)["outcome"],
        lambda: say(app, session, invocation=None, expected_revision=chance.randrange(50))["outcome"],
        lambda: call(app, "retry_verdict", run_uid=run)["reason"],
        lambda: f"{len(events(app, session, latest=2))} events",
    )
    return str(chance.choice(calls)())


def test_mixed_calls_on_one_session_never_deadlock(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app, "s0")
        say(app, session)
        run = start(app, session)
    together = Barrier(THREADS, timeout=30)

    def hammer(number: int, app: Connection) -> Counter[str]:
        chance = random.Random(number)
        told: Counter[str] = Counter()
        together.wait()
        for turn in range(CALLS_EACH):
            try:
                db.act_as(app)
                if turn == CALLS_EACH // 2 + number:
                    told[str(settle(app, run, status="failed")["outcome"])] += 1
                else:
                    told[one_call(app, chance, session, run)] += 1
                app.commit()
            except psycopg.Error as error:
                if error.sqlstate not in HARMLESS:
                    raise
                told[str(error.sqlstate)] += 1
                app.rollback()
        return told

    with connections(db, THREADS) as apps, ThreadPoolExecutor(THREADS) as threads:
        told = sum(threads.map(hammer, range(THREADS), apps), Counter[str]())
    assert sum(told.values()) == THREADS * CALLS_EACH
    # They did meet: one settled, the others found it settled.
    assert told["settled"] >= 1
    assert told["already_settled"] == THREADS - 1
    with db.as_app() as app:
        assert call(app, "verify_session", session_uid=session)["intact"]
        assert [event["seq"] for event in events(app, session)] == list(range(1, len(events(app, session)) + 1))
    (settled,) = (row for row in stored(db, "runs") if row["run_uid"] == run)
    called = {tool for row in stored(db, "events") if row["invocation_id"] == "inv-1" for tool in row["tool_calls"]}
    assert called <= set(settled["tools_executed"] or [])
