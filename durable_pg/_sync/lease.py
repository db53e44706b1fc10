# Generated from _async/lease.py by tools/async_to_sync.py: change that.
"""A worker's hold on a run, from start_run to the last word about it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any

from durable_pg._sync.calls import Calls
from durable_pg._sync.waiting import Repeating, see_through
from durable_pg._wire.requests import RunRequest, described
from durable_pg.errors import ConnectionFault, LeaseLost, Refused, RunSettled
from durable_pg.types import RunOutcome

log = logging.getLogger("durable_pg")

# A lease is renewed so often before it would be over; after trouble with the connection so much sooner.
_RENEWALS, _SOONER = 3, 4


class Lease:
    """One attempt's hold on its run: renewed in the background until it is lost, or ended by the attempt itself.

    `asked_at`: when it was asked for, by time.monotonic().
    """

    def __init__(self, me: Calls, begun: RunOutcome, request: RunRequest, asked_at: float) -> None:
        self.me = me
        self.begun = begun
        self.request = request
        # What this attempt has ended the run with; the refusal that told it that the run is another's.
        self.ended: RunOutcome | None = None
        self.refusal: Refused | None = None
        # Calls of tools that are out at this moment.
        self.calling = 0
        self._seconds = request.lease.total_seconds()
        # Until when it is certainly held, by this process's own clock: counted from before it was asked for.
        self._until = asked_at + self._seconds
        self._stopped = False
        self._renewal = Repeating(self._renew, self._seconds / _RENEWALS)

    def start(self) -> None:
        """Begin to renew."""
        self._renewal.start()

    def _stop(self) -> None:
        self._stopped = True
        self._renewal.stop()

    def _renew(self) -> float | None:
        """Renew once. Returns after how many seconds to do so again, or None when there is nothing to hold any more."""
        asked_at = time.monotonic()
        try:
            self.me.renew_lease(self.begun, lease=self.request.lease)
        except Refused as refusal:
            # Refused after the run was settled is no loss.
            if not self._stopped:
                self.lose(refusal)
                log.warning("the lease of a run is lost: %s", type(refusal).__name__)
            return None
        except Exception as error:  # noqa: BLE001 - whatever it is, the run goes on as long as it is let
            log.warning("a lease could not be renewed, trying again: %s", type(error).__name__)
            return self._seconds / _RENEWALS / _SOONER
        self._until = asked_at + self._seconds
        return self._seconds / _RENEWALS

    def lose(self, refusal: Refused) -> None:
        """Remember the first refusal. Whatever comes later is refused in the same words, and not sent."""
        if self.ended is None and self.refusal is None:
            self.refusal = refusal
            self._stop()

    def check(self) -> None:
        """Raise what the run was lost with, or RunSettled after fail() or cancel()."""
        if self.refusal is not None:
            raise copy(self.refusal) from self.refusal
        if self.ended is not None:
            raise RunSettled(
                f"this run has {self.ended.status}",
                hint="After fail() or cancel() nothing more is recorded.",
                run=self.ended,
                names={"run_uid": str(self.ended.run_uid)},
            )

    def check_clock(self) -> None:
        """Raise LeaseLost when the lease may be over by now. The database decides; this only keeps from acting late."""
        if time.monotonic() >= self._until:
            refusal = LeaseLost(
                "the lease may be over: nothing was called",
                hint="This process was held up for longer than its lease. The next run() takes the run up again.",
            )
            self.lose(refusal)
            raise refusal

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Make a call only while the run is held, and remember if it is told that the run is lost."""
        self.check()
        try:
            yield
        except (LeaseLost, RunSettled) as refusal:
            self.lose(refusal)
            raise

    def settled(self, outcome: RunOutcome) -> RunOutcome:
        """Note that this attempt has ended the run itself."""
        self.ended = outcome
        self._stop()
        return outcome

    def end(self, result: Any, error: BaseException | None) -> None:
        """Settle the run with a result, or give it back because of an error; raises only what settling raises."""
        self._stop()
        try:
            if error is not None:
                self._give_back(error)
            elif self.ended is None:
                self._settle(result)
        finally:
            self._renewal.join()

    def _settle(self, result: Any) -> None:
        try:
            with self.writing():
                self.ended = self.me.settle_run(self.begun, "succeeded", result=result)
        except (ConnectionFault, LeaseLost, RunSettled):
            # It may be settled, or another's: there is nothing to give back, or nobody to be told.
            raise
        except BaseException as error:
            self._give_back(error)
            raise

    def _give_back(self, error: BaseException) -> None:
        """Interrupt the run, if it is still held. Whoever called sees `error` and not what goes wrong here."""
        if self.ended is not None or self.refusal is not None:
            return
        if self.calling:
            # A task that goes on is still calling a tool: who looked now would not see it. The lease runs out instead.
            log.warning("a run was left while a tool is being called: it is taken up when its lease is over")
            return
        try:
            interrupt = partial(self.me.interrupt_run, self.begun, error=described(error))
            see_through(interrupt, after_cancel=self.request.patience, in_all=self.request.patience)
        except Exception as trouble:  # noqa: BLE001 - its lease runs out by itself
            log.warning("a run could not be given back: %s", type(trouble).__name__)
