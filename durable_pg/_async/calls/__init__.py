"""One method a function of the SQL interface: each is one statement and one round trip."""

from durable_pg._async.calls.checkpoints import AsyncCheckpoints
from durable_pg._async.calls.effects import AsyncEffects
from durable_pg._async.calls.maintenance import AsyncMaintainer
from durable_pg._async.calls.runs import AsyncRuns
from durable_pg._async.calls.sessions import AsyncSessions

__all__ = ["AsyncCalls", "AsyncMaintainer"]


class AsyncCalls(AsyncSessions, AsyncRuns, AsyncEffects, AsyncCheckpoints):
    """All calls of one user."""

    @property
    def tenant_id(self) -> str:
        """The tenant of every call."""
        return self._who.tenant_id

    @property
    def user_id(self) -> str:
        """The user of every call."""
        return self._who.user_id
