"""Whatever interrupts a call, and wherever: the pool gets its connection back as it was, or throws it away."""

import asyncio
import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType, SimpleNamespace
from typing import Any

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from durable_pg import AsyncDurable, Durable
from durable_pg._sync import transport
from durable_pg._wire import faults
from durable_pg.errors import ConnectionLost, DurableError
from tests.client.built import call_of
from tests.support.rented import Rented

PLACES = [
    (function, line)
    for function in (transport.OnPool._fetch, transport._fetch_on, transport._execute)  # noqa: SLF001
    for line in range(1, len(inspect.getsourcelines(function)[0]))
]


NOWHERE = "00000000-0000-0000-0000-000000000000"
IN_NOBODYS_HANDS = ("autocommit = connection.autocommit", "try:", "finally:", "hand_back(self.pool, connection)")


class Alarm(BaseException):
    """What a signal's handler raises: a worker's soft time limit, for example."""


@pytest.fixture
def pool(db: Rented) -> Iterator[ConnectionPool]:
    with ConnectionPool(db.url("app"), min_size=1, max_size=1, timeout=5) as pool:
        yield pool


def raise_at(function: Any, line: int) -> Any:
    """Return a trace function that raises once, as the line of the function is about to run."""
    code, first = function.__code__, inspect.getsourcelines(function)[1]
    done: list[bool] = []

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is code and event == "line" and frame.f_lineno == first + line and not done:
            done.append(True)
            raise Alarm
        return trace if frame.f_code is code or event == "call" else None

    return trace


@pytest.mark.parametrize(("function", "line"), PLACES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_signal_in_any_line_leaves_no_connection_changed_or_lost(
    db: Rented, pool: ConnectionPool, function: Any, line: int
) -> None:
    source = inspect.getsourcelines(function)[0][line].strip()
    if function is transport.OnPool._fetch and source in IN_NOBODYS_HANDS:  # noqa: SLF001
        pytest.skip("between the pool's hands and ours nobody can catch it")
    me = Durable(pool).act_as(db.tenant("T1"), "U1")
    sys.settrace(raise_at(function, line))
    try:
        with suppress(Alarm):
            me.list_sessions()
    finally:
        sys.settrace(None)
    with pool.connection() as connection:
        assert connection.autocommit is False
        assert connection.info.transaction_status.name == "IDLE"
    assert me.list_sessions() == []


class Hesitating(AsyncConnectionPool):
    """A pool that takes its time to take a connection back, as a busy one does."""

    reached: asyncio.Event
    go_on: asyncio.Event

    async def putconn(self, conn: Any) -> None:
        self.reached.set()
        await self.go_on.wait()
        await super().putconn(conn)


@pytest.mark.parametrize("times", [1, 3])
async def test_a_call_that_is_cancelled_while_its_connection_goes_back_loses_none(db: Rented, times: int) -> None:
    async with Hesitating(db.url("app"), min_size=1, max_size=1, timeout=5, open=False) as pool:
        pool.reached, pool.go_on = asyncio.Event(), asyncio.Event()
        me = AsyncDurable(pool).act_as(db.tenant("T1"), "U1")
        task = asyncio.create_task(me.list_sessions())
        await pool.reached.wait()
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        pool.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await me.list_sessions() == []


@pytest.mark.parametrize("severity", ["FATAL", "PANIC"])
@pytest.mark.parametrize("sqlstate", ["58030", "57014", "40001", "XX000"])
def test_what_ends_the_session_says_nothing_of_the_statement(severity: str, sqlstate: str) -> None:
    """A PANIC while the commit is written may leave a commit; a pooler reports a lost server as FATAL."""
    call = call_of(lambda me: me.append_event(NOWHERE, "agent"))
    error = told_by_the_server(severity, sqlstate)
    assert isinstance(faults.translate(error, call), ConnectionLost)
    assert faults.translate(error, call).may_have_taken_effect is True
    assert faults.translate(error, call, undone_with_connection=True).may_have_taken_effect is False
    read = call_of(lambda me: me.list_runs())
    assert faults.translate(error, read).may_have_taken_effect is False


def test_an_error_of_the_statement_says_that_it_is_undone() -> None:
    call = call_of(lambda me: me.close_session(NOWHERE))
    told: DurableError = faults.translate(told_by_the_server("ERROR", "57014"), call)
    assert told.may_have_taken_effect is False


def told_by_the_server(severity: str, sqlstate: str) -> psycopg.Error:
    """Return an error as psycopg makes it of a report with this severity, which no server gives on demand."""

    class Reported(psycopg.OperationalError):
        diag = SimpleNamespace(severity_nonlocalized=severity, message_primary="gone")  # type: ignore[assignment]

    error = Reported("gone")
    error.sqlstate = sqlstate
    return error
