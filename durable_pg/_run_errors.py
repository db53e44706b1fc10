"""What runs, effects and checkpoints raise by themselves. errors.py has all of these: import them from there."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from durable_pg._errors import _FACTS, DurableError, SetupError, WrongState

if TYPE_CHECKING:
    from durable_pg.types import BegunEffect, Effect, RunOutcome


class SettledRun(WrongState):
    """Base of RunSettled: `run` is what start_run said where me.run() raised it, None where a call was refused."""

    _more = ("run",)

    def __init__(self, message: str, *, run: RunOutcome | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.run = run

    @property
    def result(self) -> Any:
        """The recorded result; None where there is none, and where `run` is None."""
        return None if self.run is None else self.run.result


class RunBusy(DurableError):
    """me.run(): somebody else holds the run, until `lease_expires_at` unless they renew it. Nothing was started."""

    _more = ("run",)

    def __init__(self, message: str, *, run: RunOutcome, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.run = run

    @property
    def lease_expires_at(self) -> datetime | None:
        """When the run can be taken, by the database's clock, if its holder says nothing until then."""
        return self.run.lease_expires_at


class RunAwaiting(DurableError):
    """me.run(): the run waits for a person's decision. Nothing was started."""

    _more = ("run",)

    def __init__(self, message: str, *, run: RunOutcome, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.run = run


class PoolNeeded(SetupError):
    """me.run() on a connection that was brought: it needs transactions of its own. Nothing was sent."""


class CheckpointNewer(DurableError):
    """A checkpoint was saved by a newer program than this one, which must not guess what it means."""

    _more = ("schema_version", "known")

    def __init__(self, message: str, *, schema_version: int, known: int, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.schema_version = schema_version
        self.known = known


class CheckpointUpgradeMissing(DurableError):
    """A checkpoint is older than this program, and no upgrade function leads on from `from_version`."""

    _more = ("schema_version", "from_version")

    def __init__(self, message: str, *, schema_version: int, from_version: int, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.schema_version = schema_version
        self.from_version = from_version


class EffectError(DurableError):
    """Base of what run.effect() and run.call() raise instead of returning a result."""


class EffectFailed(EffectError):
    """The effect certainly did not happen. A tool raises it with what went wrong, as JSON; so may be begun again.

    Raise it only where that is known: a refusal by the provider, nothing sent. All other exceptions mean `unverified`.
    """

    def __init__(self, error: Any = None, **facts: Any) -> None:
        said = error.get("message", error) if isinstance(error, dict) else error
        super().__init__("the effect did not happen" if said is None else f"the effect did not happen: {said}", **facts)
        self.error = error
        # Of which effect run.effect() has recorded it; None as a tool raises it.
        self.effect_uid: UUID | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **{fact: getattr(self, fact) for fact in _FACTS}), (self.error,)


class EffectUnverified(EffectError):
    """Nobody knows whether the effect happened, so it is not executed again.

    `effect` says which one; it goes on when resolve_effect() has been told, or `verify` finds out.
    """

    _more = ("effect",)

    def __init__(self, message: str, *, effect: BegunEffect | Effect, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.effect = effect


class HeldEffect(EffectError, WrongState):
    """Base of EffectInFlight: `effect` is what begin_effect said where run.effect() raised it, None in a refusal."""

    _more = ("effect",)

    def __init__(self, message: str, *, effect: BegunEffect | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.effect = effect

    @property
    def lease_expires_at(self) -> datetime | None:
        """When it counts as unverified if its worker says nothing until then, by the database's clock."""
        return None if self.effect is None else self.effect.lease_expires_at


class EffectDiverged(EffectError):
    """The resumed attempt asks for another call than `effect`, which an earlier attempt made at this point."""

    _more = ("effect",)

    def __init__(self, message: str, *, effect: BegunEffect, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.effect = effect


class EffectTimedOut(EffectError, TimeoutError):
    """The tool did not answer within `timeout`. What it did is unknown: the effect is recorded as unverified."""
