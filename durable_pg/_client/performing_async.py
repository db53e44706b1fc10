"""One effect from begin to record: nothing is called that may have happened, and what can't be judged is unverified."""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

from durable_pg._client.calling import called_async, see_through_async
from durable_pg._client.effects_async import AsyncEffects
from durable_pg._client.holding import Hold, described
from durable_pg._client.wanted import Wanted, evidence, not_executed, recorded_error, unverified
from durable_pg.effects import Failed, Succeeded, Unknown
from durable_pg.errors import DurableError, EffectFailed, JsonNotStorable, WriteOnce
from durable_pg.types import BegunEffect, Effect, RunOutcome

log = logging.getLogger("durable_pg")


class AsyncPerforming:
    """Executes effects for one attempt. `patience`: how long an outcome is waited for while being cancelled."""

    def __init__(self, me: AsyncEffects, run: RunOutcome, hold: Hold, patience: float) -> None:
        self._me = me
        self._run = run
        self._hold = hold
        self._patience = patience
        # Calls of tools that are out at this moment.
        self.calling = 0
        # Effects that this attempt has had an answer for.
        self._answered: set[UUID] = set()

    async def perform(self, wanted: Wanted) -> Any:
        """Return the effect's result, recorded now or before. Raises as AsyncRun.effect() says."""
        begun = await self._begin(wanted)
        if begun.outcome == "unverified":
            resolved = await self._verify(begun, wanted)
            if resolved is not None and resolved.status == "succeeded":
                return resolved.result
            # What is recorded is the answer; what certainly did not happen is begun again.
            begun = await self._begin(wanted)
        if begun.outcome == "execute":
            self._answered.add(begun.effect_uid)
            return await self._execute(begun, wanted)
        if begun.outcome == "recorded":
            if begun.effect_uid in self._answered and wanted.intent is None:
                log.warning("the same call was made twice in one step and executed once; ordinal= tells two apart")
            self._answered.add(begun.effect_uid)
            return begun.result
        raise not_executed(begun)

    async def _begin(self, wanted: Wanted) -> BegunEffect:
        with self._hold.writing():
            return await self._me.begin_effect(
                self._run,
                wanted.tool,
                wanted.args,
                step=wanted.step,
                ordinal=wanted.ordinal,
                intent=wanted.intent,
                scope=wanted.scope,
                args_may_differ=wanted.args_may_differ,
                provider_dedupes_for=wanted.provider_dedupes_for,
            )

    async def _execute(self, begun: BegunEffect, wanted: Wanted) -> Any:
        # A process that slept since it asked must not wake up and call: others may have been told that nobody has.
        self._hold.check_clock()
        self.calling += 1
        try:
            result = await called_async(partial(wanted.call, begun.idempotency_key), wanted.timeout)
        except BaseException as error:
            if not wanted.certainly_failed(error):
                await self._leave_unverified(begun, error)
                raise
            ended = await self._finish(begun, "failed", error=recorded_error(error))
            if ended.status != "failed":
                # It was begun before, under the same key: that call may have acted.
                raise unverified(ended, "this call failed, and an earlier one may have acted") from error
            failed = error if isinstance(error, EffectFailed) else EffectFailed(described(error))
            failed.effect_uid = begun.effect_uid
            if failed is error:
                raise
            raise failed from error
        finally:
            self.calling -= 1
        try:
            await self._finish(begun, "succeeded", result=result)
        except JsonNotStorable as unfit:
            await self._leave_unverified(begun, unfit)
            raise JsonNotStorable(
                f"{begun.tool} was called, but its result can't be recorded: {unfit.message}",
                detail=unfit.detail,
                hint=f"{unfit.hint} The effect is unverified until somebody resolves it.",
                column="result",
                call="finish_effect",
                names={**unfit.names, "effect_uid": str(begun.effect_uid)},
            ) from None
        except DurableError as lost:
            lost.hint = (
                f"{lost.hint} {begun.tool} was called and has answered; that is not recorded: it is unverified.".strip()
            )
            raise
        return result

    async def _finish(self, begun: BegunEffect, status: Any, *, result: Any = None, error: Any = None) -> Effect:
        """Record what is known, even while being cancelled or after the lease was lost: it is true all the same."""
        finish = self._me.finish_effect(begun, status, result=result, error=error)
        return await see_through_async(finish, after_cancel=self._patience)

    async def _leave_unverified(self, begun: BegunEffect, error: BaseException) -> None:
        try:
            await self._finish(begun, "unverified", error=described(error))
        except Exception as trouble:  # noqa: BLE001 - the tool's own exception is what the caller has to see
            # Without an outcome it reads as unverified as soon as its lease is over.
            log.warning("an effect could not be recorded as unverified: %s", type(trouble).__name__)

    async def _verify(self, begun: BegunEffect, wanted: Wanted) -> Effect | None:
        """Ask by the other channel, and record the answer; None when somebody has recorded one meanwhile."""
        if wanted.verify is None:
            raise not_executed(begun)
        try:
            found = await called_async(partial(wanted.verify, begun.idempotency_key), None)
        except Exception as error:
            raise unverified(begun, f"verify raised {type(error).__name__}") from error
        if isinstance(found, Unknown):
            raise unverified(begun, "verify could not tell")
        if not isinstance(found, (Succeeded, Failed)):
            raise TypeError(f"verify has to answer Succeeded, Failed or Unknown, not {type(found).__name__}")
        if isinstance(found, Failed):
            with suppress(WriteOnce):  # to begin it again tells what is recorded
                return await self._me.resolve_effect(begun, "failed", evidence(found))
            return None
        try:
            return await self._me.resolve_effect(begun, "succeeded", evidence(found), result=found.result)
        except WriteOnce:
            # It was seen to have happened: whatever else is recorded, it must not be called again.
            recorded = [row for row in await self._me.list_effects(self._run) if row.effect_uid == begun.effect_uid]
            if recorded and recorded[0].status == "succeeded":
                return recorded[0]
            raise
