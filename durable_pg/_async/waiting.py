"""What waits differently with asyncio and without it. _sync/waiting.py has the same names, and is kept by hand too."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from durable_pg._wire.requests import check_takes, timed_out
from durable_pg.errors import ConnectionLost

T = TypeVar("T")

# Before Python 3.11 asyncio has one of its own.
_TIMEOUTS = (TimeoutError, asyncio.TimeoutError)
_LONGEST_JOIN = 5.0


async def called(act: Callable[[], Any], timeout: float | None) -> Any:  # the tool's, not ours
    """Call what may be a plain function or an async one. Raises EffectTimedOut after `timeout` seconds.

    A plain function runs on the event loop, and can't be timed.
    """
    answer = act()
    if not inspect.isawaitable(answer):
        return answer
    if timeout is None:
        return await answer
    own: list[BaseException] = []

    async def answering() -> Any:
        try:
            return await answer
        except _TIMEOUTS as error:
            own.append(error)
            raise

    try:
        return await asyncio.wait_for(answering(), timeout)
    except _TIMEOUTS:
        if own:
            raise
    raise timed_out(timeout)


def check_callable(function: object, takes: str | None = None) -> None:
    """Raise TypeError for what can't be called, or not with the one argument that `takes` names."""
    check_takes(function, takes)


async def see_through(
    make: Callable[[], Coroutine[Any, Any, T]], *, after_cancel: float, in_all: float | None = None
) -> T:
    """Make a call, and wait for it so many seconds even when the caller is being cancelled; then be cancelled.

    `in_all`: for how long at most, cancelled or not.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        # The coroutine is being closed without a loop, at the end of a process: nothing can be sent any more.
        raise ConnectionLost("there is no event loop any more") from None
    task = loop.create_task(make())
    deadline = None if in_all is None else loop.time() + in_all
    cancelled: asyncio.CancelledError | None = None
    while not task.done() and (deadline is None or loop.time() < deadline):
        try:
            await asyncio.wait({task}, timeout=None if deadline is None else deadline - loop.time())
        except asyncio.CancelledError as error:
            cancelled = error
            deadline = deadline or loop.time() + after_cancel
    if not task.done():
        task.cancel()
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        raise cancelled or ConnectionLost("no answer in time", may_have_taken_effect=True)
    if cancelled is not None:
        raise cancelled from task.exception()
    return task.result()


async def hand_back(pool: AsyncConnectionPool[Any], connection: AsyncConnection[Any]) -> None:
    """Give a connection back to its pool, whatever interrupts its user on the way.

    Cancelled in the middle of it, a pool would count the connection as taken for ever: it is seen through.
    """
    handing = asyncio.ensure_future(pool.putconn(connection))
    cancelled: asyncio.CancelledError | None = None
    while not handing.done():
        try:
            await asyncio.shield(handing)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    handing.result()


class Repeating:
    """Calls `act` after a pause, again and again, in a task: it answers how many seconds the next pause takes, or None.

    `pause`: seconds before the first time.
    """

    def __init__(self, act: Callable[[], Awaitable[float | None]], pause: float) -> None:
        self._act = act
        self._pause = pause
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._go_on(), name="durable-pg renewal")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def join(self) -> None:
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_LONGEST_JOIN)

    async def _go_on(self) -> None:
        pause: float | None = self._pause
        while pause is not None:
            await asyncio.sleep(pause)
            pause = await self._act()
