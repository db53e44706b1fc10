"""What this process knows of its hold on a run, and what an error looks like in the record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

from durable_pg.errors import LeaseLost, Refused, RunSettled
from durable_pg.types import RunOutcome

# A message may be a whole page of HTML.
_LONGEST_MESSAGE = 2000


class Hold:
    """One attempt's hold on its run: there until it is lost, or ended by the attempt itself."""

    def __init__(self) -> None:
        self.ended: RunOutcome | None = None
        self.refusal: Refused | None = None
        self.on_loss: Callable[[], None] = lambda: None
        # Until when the lease is certainly held, by this process's own clock: counted from before it was asked for.
        self.until = float("inf")

    def leased(self, asked_at: float, seconds: float) -> None:
        """Note a lease of so many seconds that was asked for at a moment of time.monotonic()."""
        self.until = asked_at + seconds

    def check_clock(self) -> None:
        """Raise LeaseLost when the lease may be over by now. The database decides; this only keeps from acting late."""
        if time.monotonic() >= self.until:
            refusal = LeaseLost(
                "the lease may be over: nothing was called",
                hint="This process was held up for longer than its lease. The next run() takes the run up again.",
            )
            self.lose(refusal)
            raise refusal

    def lose(self, refusal: Refused) -> None:
        """Remember the first refusal. Whatever comes later is refused in the same words, and not sent."""
        if self.ended is None and self.refusal is None:
            self.refusal = refusal
            self.on_loss()

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

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Make a call only while the run is held, and remember if it is told that the run is lost."""
        self.check()
        try:
            yield
        except (LeaseLost, RunSettled) as refusal:
            self.lose(refusal)
            raise


def described(error: BaseException) -> dict[str, Any]:
    """What is recorded of an error: its type and what it says."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - an error's own __str__ may raise anything
        message = ""
    return {"type": type(error).__qualname__, "message": str.__str__(message)[:_LONGEST_MESSAGE]}
