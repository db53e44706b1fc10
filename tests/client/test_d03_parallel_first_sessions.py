"""D03, google/adk-python#4954 and #6823: first sessions opened in parallel collided on the shared state row."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import psycopg
import pytest

from durable_pg import AsyncDurable, Durable
from durable_pg.errors import ConnectionLost
from durable_pg.types import Session
from tests.support.rented import Rented, nothing_written, stored

OPENERS = 20


def state_of(number: int) -> dict[str, Any]:
    return {f"app:k{number}": number, "user:n": number, "x": 1}


def by_threads(db: Rented) -> list[Session]:
    together = Barrier(OPENERS)
    with Durable.from_url(db.url("app"), max_size=OPENERS) as durable, ThreadPoolExecutor(OPENERS) as threads:

        def work(number: int) -> Session:
            me = durable.act_as(db.tenant("T1"), f"U{number % 5}")
            together.wait()
            return me.open_session("demo", None, state_of(number))

        return list(threads.map(work, range(OPENERS)))


def by_tasks(db: Rented) -> list[Session]:
    async def work() -> list[Session]:
        async with AsyncDurable.from_url(db.url("app"), max_size=OPENERS) as durable:
            people = [durable.act_as(db.tenant("T1"), f"U{number % 5}") for number in range(OPENERS)]
            return await asyncio.gather(
                *(me.open_session("demo", None, state_of(number)) for number, me in enumerate(people))
            )

    return asyncio.run(work())


@pytest.mark.parametrize("open_all", [by_threads, by_tasks])
def test_twenty_parallel_first_opens_all_succeed_and_lose_no_state(
    db: Rented, open_all: Callable[[Rented], list[Session]]
) -> None:
    sessions = open_all(db)
    assert [session.outcome for session in sessions] == ["created"] * OPENERS
    assert len({session.session_uid for session in sessions}) == OPENERS
    (app_state,) = stored(db, "app_states")
    assert app_state["state"] == {f"k{number}": number for number in range(OPENERS)}
    user_states = stored(db, "user_states")
    assert [row["user_id"] for row in user_states] == [f"U{number}" for number in range(5)]
    for row in user_states:
        assert row["state"]["n"] in range(int(row["user_id"][1:]), OPENERS, 5)
    assert [row["state"] for row in stored(db, "sessions")] == [{"x": 1}] * OPENERS


def test_a_client_killed_between_its_calls_leaves_nothing(db: Rented) -> None:
    with db.superuser() as root, nothing_written(db):
        connection = psycopg.connect(db.url("app"))
        me = Durable.on(connection).act_as(db.tenant("T1"), "U1")
        me.open_session("support", "s1", state_of(1))
        root.execute("select pg_terminate_backend(%s)", (connection.info.backend_pid,))
        with pytest.raises(ConnectionLost) as lost:
            me.open_session("support", "s2", state_of(2))
        assert not lost.value.may_have_taken_effect
        connection.close()
    with Durable.from_url(db.url("app"), max_size=1) as durable:
        me = durable.act_as(db.tenant("T1"), "U1")
        assert me.open_session("support", "s1", {"y": 2}).outcome == "created"
