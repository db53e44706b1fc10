"""A worker's grip on a run, from start_run to the last word about it."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from durable_pg._client.asked import Asked
from durable_pg._client.calling import see_through_async
from durable_pg._client.holding import Hold, described
from durable_pg._client.performing_async import AsyncPerforming
from durable_pg._client.renewal import AsyncRenewal
from durable_pg.errors import ConnectionFault, LeaseLost, RunSettled
from durable_pg.types import RunOutcome

if TYPE_CHECKING:
    from durable_pg.client_async import AsyncIdentity

log = logging.getLogger("durable_pg")

# A lease is renewed so often before it would be over.
_RENEWALS = 3


class AsyncGrip:
    """Holds a run by renewing its lease, until end()."""

    def __init__(self, me: AsyncIdentity, begun: RunOutcome, asked: Asked, asked_at: float) -> None:
        self.me = me
        self.begun = begun
        self.asked = asked
        self.hold = Hold()
        self.performing = AsyncPerforming(me, begun, self.hold, asked.patience)
        self._lease = asked.lease.total_seconds()
        self._renewal = AsyncRenewal(self._renew, self._lease / _RENEWALS, self.hold.lose)
        self.hold.on_loss = self._renewal.stop
        self.hold.leased(asked_at, self._lease)

    def start(self) -> None:
        """Begin to renew."""
        self._renewal.start()

    async def _renew(self) -> None:
        asked_at = time.monotonic()
        await self.me.renew_lease(self.begun, lease=self.asked.lease)
        self.hold.leased(asked_at, self._lease)

    async def load(self) -> tuple[int, Any] | None:
        """Return step and state of the newest checkpoint, as this program knows it."""
        if self.begun.outcome != "resumed":
            return None
        saved = await self.me.load_checkpoint(self.begun)
        if saved is None:
            return None
        return saved.step, self.asked.upgrades.upgraded(saved.state, saved.schema_version)

    def settled(self, outcome: RunOutcome) -> RunOutcome:
        """Note that this attempt has ended the run itself."""
        self.hold.ended = outcome
        self._renewal.stop()
        return outcome

    async def end(self, result: Any, error: BaseException | None) -> None:
        """Settle the run with a result, or give it back because of an error; raises only what settling raises."""
        self._renewal.stop()
        try:
            if error is not None:
                await self._give_back(error)
            elif self.hold.ended is None:
                await self._settle(result)
        finally:
            await self._renewal.join()

    async def _settle(self, result: Any) -> None:
        try:
            with self.hold.writing():
                self.hold.ended = await self.me.settle_run(self.begun, "succeeded", result=result)
        except (ConnectionFault, LeaseLost, RunSettled):
            # It may be settled, or another's: there is nothing to give back, or nobody to be told.
            raise
        except BaseException as error:
            await self._give_back(error)
            raise

    async def _give_back(self, error: BaseException) -> None:
        """Interrupt the run, if it is still held. Whoever called sees `error` and not what goes wrong here."""
        if self.hold.ended is not None or self.hold.refusal is not None:
            return
        if self.performing.calling:
            # A task that goes on is still calling a tool: who looked now would not see it. The lease runs out instead.
            log.warning("a run was left while a tool is being called: it is taken up when its lease is over")
            return
        try:
            interrupt = self.me.interrupt_run(self.begun, error=described(error))
            await see_through_async(interrupt, after_cancel=self.asked.patience, in_all=self.asked.patience)
        except Exception as trouble:  # noqa: BLE001 - its lease runs out by itself
            log.warning("a run could not be given back: %s", type(trouble).__name__)
