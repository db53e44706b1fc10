# Generated from _async/calls/caller.py by tools/async_to_sync.py: change that.
"""Who calls, and by which way."""

from __future__ import annotations

from typing import Generic, TypeVar

from durable_pg._sync.transport import Way, run
from durable_pg._wire.statements import Call, Nobody, Who

T = TypeVar("T")
W = TypeVar("W", Who, Nobody)


class Caller(Generic[W]):
    """A way to the database, and who calls."""

    def __init__(self, way: Way, who: W) -> None:
        self._way = way
        self._who: W = who

    def _fetch(self, call: Call[T]) -> T:
        return run(self._way, call)
