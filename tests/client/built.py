"""What a method of the client builds, before anything is sent."""

from collections.abc import Callable
from typing import Any

from durable_pg import Identity
from durable_pg._wire.statements import Call, identify


class _Built(Exception):
    def __init__(self, call: Call[Any]) -> None:
        super().__init__(call.name)
        self.call = call


class _Nowhere:
    """A way that leads to no database."""

    def fetch(self, call: Call[Any]) -> Any:
        raise _Built(call)

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass


def call_of(use: Callable[[Identity], object]) -> Call[Any]:
    """Return the call that a method makes."""
    try:
        use(Identity(_Nowhere(), identify("T1", "U1")))
    except _Built as built:
        return built.call
    raise AssertionError("nothing was to be sent")
