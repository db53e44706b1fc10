"""The client: how it gets to the database, and what one user may do there; run() executes a turn."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any

from psycopg_pool import AsyncConnectionPool

from durable_pg._async import transport
from durable_pg._async.calls import AsyncCalls, AsyncMaintainer
from durable_pg._async.run import AsyncRun, AsyncRunning, run_once
from durable_pg._wire.requests import RunRequest, this_worker
from durable_pg._wire.statements import Nobody, identify
from durable_pg.checkpoints import CheckpointUpgrades, checkpoint_upgrade
from durable_pg.types import AnySession

if TYPE_CHECKING:
    from typing_extensions import Self


class AsyncDurable:
    """A way to a database with durable_pg in it. It holds no identity and makes no object in the database.

    Made of a psycopg pool, which stays the caller's to open and close; see also from_url() and on(). The login should
    be in durable_app; schema and roles come from `durable-pg upgrade`, run by another login.
    """

    __module__ = "durable_pg"

    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        if not isinstance(pool, AsyncConnectionPool):
            raise TypeError(
                f"a psycopg_pool.AsyncConnectionPool is needed, not {type(pool)!r}; see from_url() and on()"
            )
        self._way: transport.AsyncWay = transport.AsyncOnPool(pool)

    @classmethod
    def from_url(cls, url: str | None = None, *, min_size: int = 1, max_size: int = 10, timeout: float = 30.0) -> Self:
        """A client with a pool of its own, opened by `async with` or open().

        `url`: postgresql://, postgres://, SQLAlchemy's postgresql+driver:// or libpq's key=value; without it
        DURABLE_PG_URL, then DATABASE_URL, then libpq's PG* variables. `min_size`, `max_size`: connections. `timeout`:
        seconds to wait for a free one. Nothing is prepared on the server and nothing outlives a transaction, so a
        pooler in transaction mode may stand in between. Raises ArgumentInvalid (22W03) for a URL that is none.
        """
        return cls._over(transport.AsyncOnOwnPool(url, min_size=min_size, max_size=max_size, timeout=timeout))

    @classmethod
    def on(cls, connection: object) -> Self:
        """A client on a psycopg or SQLAlchemy connection of the caller's: calls take part in its transaction.

        None of its settings is changed, nothing is committed, retried or closed. A refusal aborts the transaction, as
        any error does in Postgres: wrap a call in a savepoint (connection.transaction(), begin_nested()) to go on.
        Raises TypeError for anything else.
        """
        return cls._over(transport.way_on(connection))

    @classmethod
    def _over(cls, way: transport.AsyncWay) -> Self:
        durable = cls.__new__(cls)
        durable._way = way  # noqa: SLF001  # our own
        return durable

    def act_as(self, tenant_id: str, user_id: str) -> AsyncIdentity:
        """The view of one user of one tenant: every call through it carries this identity.

        Raises IdentifierInvalid (22W01) for what is no text; other limits are checked by the first call.
        """
        return AsyncIdentity(self._way, identify(tenant_id, user_id))

    def maintainer(self) -> AsyncMaintainer:
        """What concerns all tenants: which runs nobody executes. For a login in durable_maintainer."""
        return AsyncMaintainer(self._way, Nobody())

    async def open(self) -> None:
        """Open the pool of from_url(), after one connection has shown that the database can be reached.

        Raises CannotConnect with the reason, and PoolNotOpen after close(): make another client then. Does nothing when
        it is open.
        """
        await self._way.open()

    async def close(self) -> None:
        """Close the pool of from_url(); what the caller brought stays open."""
        await self._way.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncIdentity(AsyncCalls):
    """What one user may do. Made by act_as().

    Every call may be repeated after a crash: what is there already is told in `outcome`. Refusals are subclasses of
    errors.Refused, one a SQLSTATE; broken connections are errors.ConnectionFault, which say whether the call may have
    taken effect. Calls that are repeatable by nature are sent again once by themselves, on a pool only: all but
    start_run, begin_effect, append_event without event_id and open_session without session_id.
    """

    __module__ = "durable_pg"

    def run(
        self,
        session: AnySession,
        invocation_id: str,
        *,
        message: Any = None,
        input: Any = None,  # noqa: A002  # as in start_run
        trigger: str = "user",
        worker: str | None = None,
        lease: timedelta = timedelta(seconds=60),
        max_attempts: int | None = None,
        upgrades: CheckpointUpgrades = checkpoint_upgrade,
    ) -> AsyncRunning:
        """Execute a run in a block: `async with me.run(session, "inv-1") as run`. It needs a client over a pool.

        The run is started, or taken up after an interruption, and held by renewing the lease. At the end of the block
        it is settled as succeeded with `run.result`. An exception or a cancellation leaves it interrupted, with the
        error recorded and the lease given back, so that the next run() of this invocation resumes it.

        `message`: of the user, recorded first. `worker`: a name for this one, by default host and process. `lease`:
        after so long without a word others may take the run. `max_attempts`: the last of them settles the run as failed
        when it is interrupted. `upgrades`: for older checkpoints.

        Entering raises RunSettled with the recorded result, RunBusy, RunAwaiting, CheckpointNewer,
        CheckpointUpgradeMissing, and what append_event and start_run raise; PoolNeeded at once.
        """
        patience = transport.patience(self._way)
        name = this_worker() if worker is None else worker
        request = RunRequest(
            session, invocation_id, message, input, trigger, name, lease, max_attempts, upgrades, patience
        )
        return AsyncRunning(self, request)

    async def run_once(
        self,
        session: AnySession,
        invocation_id: str,
        turn: Callable[[AsyncRun], Any],
        *,
        message: Any = None,
        input: Any = None,  # noqa: A002  # as in start_run
        trigger: str = "user",
        worker: str | None = None,
        lease: timedelta = timedelta(seconds=60),
        max_attempts: int | None = None,
        upgrades: CheckpointUpgrades = checkpoint_upgrade,
    ) -> Any:
        """Return what `turn(run)` returns, or without calling it the recorded result of a run that has succeeded.

        The other parameters, and what is raised, are those of run(); RunSettled when the run has failed or was
        cancelled.
        """
        running = self.run(
            session,
            invocation_id,
            message=message,
            input=input,
            trigger=trigger,
            worker=worker,
            lease=lease,
            max_attempts=max_attempts,
            upgrades=upgrades,
        )
        return await run_once(running, turn)
