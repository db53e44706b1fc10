"""Postgres keeps the history of AI-agent runs straight: recorded once, never rewritten, shown to its own user only.

The guarantees live in the database (the schema `durable`); this package installs them and is a thin way to call them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from durable_pg.client import Durable, Identity, Maintainer
    from durable_pg.client_async import AsyncDurable, AsyncIdentity, AsyncMaintainer
    from durable_pg.effects import EffectFailed, Failed, Succeeded, Unknown
    from durable_pg.running import Run
    from durable_pg.running_async import AsyncRun
    from durable_pg.tool_registry import declared_tools, durable_tool
    from durable_pg.upgrades import CheckpointUpgrades, checkpoint_upgrade

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
    **dict.fromkeys(("AsyncDurable", "AsyncIdentity", "AsyncMaintainer"), "client_async"),
    **dict.fromkeys(("Durable", "Identity", "Maintainer"), "client"),
    "AsyncRun": "running_async",
    "Run": "running",
    **dict.fromkeys(("EffectFailed", "Failed", "Succeeded", "Unknown"), "effects"),
    **dict.fromkeys(("declared_tools", "durable_tool"), "tool_registry"),
    **dict.fromkeys(("CheckpointUpgrades", "checkpoint_upgrade"), "upgrades"),
}


def __getattr__(name: str) -> Any:
    """Import the client when it is asked for: the command line must answer a Ctrl-C before that much is loaded."""
    from importlib import import_module  # noqa: PLC0415

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"durable_pg.{_MODULES[name]}"), name)
