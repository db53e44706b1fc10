"""Who calls, and by which way."""

from __future__ import annotations

from typing import Generic, TypeVar

from durable_pg._async.transport import AsyncWay, run
from durable_pg._wire.statements import Call, Nobody, Who

T = TypeVar("T")
W = TypeVar("W", Who, Nobody)


class AsyncCaller(Generic[W]):
    """A way to the database, and who calls."""

    def __init__(self, way: AsyncWay, who: W) -> None:
        self._way = way
        self._who: W = who

    async def _fetch(self, call: Call[T]) -> T:
        return await run(self._way, call)
