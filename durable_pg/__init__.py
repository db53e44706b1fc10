"""Postgres keeps the history of AI-agent runs straight: recorded once, never rewritten, shown to its own user only.

The guarantees live in the database (the schema `durable`); this package installs them and is a thin way to call them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from durable_pg._async.calls import AsyncMaintainer
    from durable_pg._async.client import AsyncDurable, AsyncIdentity
    from durable_pg._async.run import AsyncRun
    from durable_pg._sync.calls import Maintainer
    from durable_pg._sync.client import Durable, Identity
    from durable_pg._sync.run import Run
    from durable_pg.checkpoints import CheckpointUpgrades, checkpoint_upgrade
    from durable_pg.errors import EffectFailed
    from durable_pg.tools import Failed, Succeeded, Unknown, declared_tools, durable_tool

__version__ = "0.1.0.dev0"
__all__ = [
    "AsyncDurable",
    "AsyncIdentity",
    "AsyncMaintainer",
    "AsyncRun",
    "CheckpointUpgrades",
    "Durable",
    "EffectFailed",
    "Failed",
    "Identity",
    "Maintainer",
    "Run",
    "Succeeded",
    "Unknown",
    "checkpoint_upgrade",
    "declared_tools",
    "durable_tool",
]

_MODULES = {
    **dict.fromkeys(("AsyncDurable", "AsyncIdentity"), "_async.client"),
    "AsyncMaintainer": "_async.calls",
    "AsyncRun": "_async.run",
    **dict.fromkeys(("Durable", "Identity"), "_sync.client"),
    "Maintainer": "_sync.calls",
    "Run": "_sync.run",
    "EffectFailed": "errors",
    **dict.fromkeys(("Failed", "Succeeded", "Unknown", "declared_tools", "durable_tool"), "tools"),
    **dict.fromkeys(("CheckpointUpgrades", "checkpoint_upgrade"), "checkpoints"),
}


def __getattr__(name: str) -> Any:
    """Import the client when it is asked for: the command line must answer a Ctrl-C before that much is loaded."""
    from importlib import import_module  # noqa: PLC0415

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"durable_pg.{_MODULES[name]}"), name)
