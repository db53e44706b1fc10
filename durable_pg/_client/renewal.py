"""Keeps a lease from running out while a run is executed: a task in asyncio, a thread without it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from threading import Event, Thread

from durable_pg.errors import Refused

log = logging.getLogger("durable_pg")

# After trouble with the connection it tries again so much sooner, as long as the lease may still be held.
_SOONER = 4
_LONGEST_JOIN = 5.0


class _Pace:
    """When to renew next, and what to do about an error."""

    def __init__(self, every: float, lose: Callable[[Refused], None]) -> None:
        self.pause = every
        self._every = every
        self._lose = lose

    def renewed(self) -> None:
        self.pause = self._every

    def failed(self, error: Exception) -> bool:
        """Say whether to try again."""
        if isinstance(error, Refused):
            self._lose(error)
            log.warning("the lease of a run is lost: %s", type(error).__name__)
            return False
        log.warning("a lease could not be renewed, trying again: %s", type(error).__name__)
        self.pause = self._every / _SOONER
        return True


class AsyncRenewal:
    """Calls `renew` every so many seconds, until it is refused; then it calls `lose`, once."""

    def __init__(self, renew: Callable[[], Awaitable[object]], every: float, lose: Callable[[Refused], None]) -> None:
        self._renew = renew
        self._pace = _Pace(every, lose)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._go_on(), name="durable-pg renewal")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def join(self) -> None:
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_LONGEST_JOIN)

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(self._pace.pause)
            try:
                await self._renew()
                self._pace.renewed()
            except Exception as error:  # noqa: BLE001 - whatever it is, the run goes on as long as it is let
                if not self._pace.failed(error):
                    return


class Renewal:
    """The same in a thread, which ends with the process."""

    def __init__(self, renew: Callable[[], object], every: float, lose: Callable[[Refused], None]) -> None:
        self._renew = renew
        self._pace = _Pace(every, lose)
        self._stopped = Event()
        self._thread = Thread(target=self._go_on, name="durable-pg renewal", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def join(self) -> None:
        if self._thread.ident is not None:
            self._thread.join(_LONGEST_JOIN)

    def _go_on(self) -> None:
        while not self._stopped.wait(self._pace.pause):
            try:
                self._renew()
                self._pace.renewed()
            except Exception as error:  # noqa: BLE001 - as above
                # Refused after the run was settled is no loss.
                if self._stopped.is_set() or not self._pace.failed(error):
                    return
