"""Postgres keeps the history of AI-agent runs straight: recorded once, never rewritten, shown to its own user only.

The guarantees live in the database (the schema `durable`); this package installs them and is a thin way to call them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from durable_pg.client import Durable, Identity
    from durable_pg.client_async import AsyncDurable, AsyncIdentity

__version__ = "0.1.0.dev0"
__all__ = ["AsyncDurable", "AsyncIdentity", "Durable", "Identity"]

_MODULES = {"AsyncDurable": "client_async", "AsyncIdentity": "client_async", "Durable": "client", "Identity": "client"}


def __getattr__(name: str) -> Any:
    """Import the client when it is asked for: the command line must answer a Ctrl-C before that much is loaded."""
    from importlib import import_module  # noqa: PLC0415

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"durable_pg.{_MODULES[name]}"), name)
