# Generated from _async/calls/__init__.py by tools/async_to_sync.py: change that.
"""One method a function of the SQL interface: each is one statement and one round trip."""

from durable_pg._sync.calls.checkpoints import Checkpoints
from durable_pg._sync.calls.effects import Effects
from durable_pg._sync.calls.maintenance import Maintainer
from durable_pg._sync.calls.runs import Runs
from durable_pg._sync.calls.sessions import Sessions

__all__ = ["Calls", "Maintainer"]


class Calls(Sessions, Runs, Effects, Checkpoints):
    """All calls of one user."""

    @property
    def tenant_id(self) -> str:
        """The tenant of every call."""
        return self._who.tenant_id

    @property
    def user_id(self) -> str:
        """The user of every call."""
        return self._who.user_id
