"""What waits differently without asyncio and with it. _async/waiting.py has the same names, and is kept by hand too."""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Event, Thread
from typing import Any, TypeVar

from psycopg import Connection
from psycopg_pool import ConnectionPool

from durable_pg._wire.requests import check_takes, timed_out

T = TypeVar("T")

_ASYNC_FUNCTION = "an async function was given to the synchronous client; use AsyncDurable"
_LONGEST_JOIN = 5.0


def called(act: Callable[[], Any], timeout: float | None) -> Any:
    """Call a function, in a thread of its own where it is timed: that goes on after EffectTimedOut is raised."""
    if timeout is None:
        return _no_coroutine(act())
    done: Future[Any] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            done.set_result(context.run(act))
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
            done.set_exception(error)

    Thread(target=work, name="durable-pg tool", daemon=True).start()
    wait([done], timeout)
    if not done.done():
        raise timed_out(timeout)
    return _no_coroutine(done.result())


def _no_coroutine(answer: Any) -> Any:
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError(_ASYNC_FUNCTION)
    return answer


def check_callable(function: object, takes: str | None = None) -> None:
    """Raise TypeError for what can't be called here: in time, while nothing is begun yet."""
    check_takes(function, takes)
    if inspect.iscoroutinefunction(function):
        raise TypeError(_ASYNC_FUNCTION)


def see_through(
    make: Callable[[], T],
    *,
    after_cancel: float,  # noqa: ARG001  # nobody cancels a thread
    in_all: float | None = None,  # noqa: ARG001
) -> T:
    """Make a call, which nothing can interrupt but a signal."""
    return make()


def hand_back(pool: ConnectionPool[Any], connection: Connection[Any]) -> None:
    """Give a connection back to its pool."""
    pool.putconn(connection)


class Repeating:
    """Calls `act` after a pause, again and again, in a thread that ends with the process.

    It answers how many seconds the next pause takes, or None. `pause`: seconds before the first time.
    """

    def __init__(self, act: Callable[[], float | None], pause: float) -> None:
        self._act = act
        self._pause = pause
        self._stopped = Event()
        self._thread = Thread(target=self._go_on, name="durable-pg renewal", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def join(self) -> None:
        if self._thread.ident is not None:
            self._thread.join(_LONGEST_JOIN)

    def _go_on(self) -> None:
        pause: float | None = self._pause
        while pause is not None and not self._stopped.wait(pause):
            pause = self._act()
