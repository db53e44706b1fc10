"""What waits differently in the two worlds, in pairs: a generated twin finds the second by the name of the first."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from threading import Thread
from typing import Any, TypeVar

from durable_pg.errors import ConnectionLost, EffectTimedOut

T = TypeVar("T")

# Before Python 3.11 asyncio has one of its own.
_TIMEOUTS = (TimeoutError, asyncio.TimeoutError)


async def called_async(act: Callable[[], Any], timeout: float | None) -> Any:  # the tool's, not ours
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
    raise _timed_out(timeout)


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
        raise _timed_out(timeout)
    return _no_coroutine(done.result())


def _timed_out(timeout: float) -> EffectTimedOut:
    return EffectTimedOut(f"no answer within {timeout} s", hint="Whether it had its effect is unknown: verify it.")


def _no_coroutine(answer: Any) -> Any:
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError("an async function was given to the synchronous client; use AsyncDurable")
    return answer


def check_callable_async(function: object, takes: str | None = None) -> None:
    """Raise TypeError for what can't be called, or not with the one argument that `takes` names."""
    if not callable(function):
        raise TypeError(f"a function is needed, not {type(function).__name__}")
    if takes is None:
        return
    try:
        inspect.signature(function).bind(takes)
    except TypeError:
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(f"{name} has to take one argument, the {takes}") from None
    except ValueError:
        pass  # some of C's functions have no signature


def check_callable(function: object, takes: str | None = None) -> None:
    """Raise TypeError for what can't be called here: in time, while nothing is begun yet."""
    check_callable_async(function, takes)
    if inspect.iscoroutinefunction(function):
        raise TypeError("an async function was given to the synchronous client; use AsyncDurable")


async def see_through_async(call: Coroutine[Any, Any, T], *, after_cancel: float, in_all: float | None = None) -> T:
    """Wait for a call although the caller is being cancelled, so many seconds from then on; then be cancelled.

    `in_all`: for how long at most, cancelled or not.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        # The coroutine is being closed without a loop, at the end of a process: nothing can be sent any more.
        call.close()
        raise ConnectionLost("there is no event loop any more") from None
    task = loop.create_task(call)
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


def see_through(answer: T, *, after_cancel: float, in_all: float | None = None) -> T:  # noqa: ARG001  # as its twin
    """Return what has been waited for already."""
    return answer
