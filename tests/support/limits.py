"""A test that hangs ends, and says where: every thread's stack by pytest-timeout, and every asyncio task's here."""

import asyncio
import signal
import sys
from collections.abc import Generator
from types import FrameType
from typing import Any

import pytest


def show_tasks() -> None:
    """Write where each task of the running event loop stands, to the real standard error."""
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:
        return  # no loop runs in this thread
    for task in tasks:
        task.print_stack(file=sys.__stderr__)


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer() -> Generator[None, Any, Any]:
    """Go before pytest-timeout's own handler, which fails the test in whatever line it is."""
    answer = yield
    fail = signal.getsignal(signal.SIGALRM)

    def show_and_fail(number: int, frame: FrameType | None) -> None:
        show_tasks()
        if callable(fail):
            fail(number, frame)

    if callable(fail):
        signal.signal(signal.SIGALRM, show_and_fail)
    return answer
