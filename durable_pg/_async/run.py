"""Runs: started or taken up, held by a lease, executed, and settled or given back, whatever happens in between.

An effect goes from begin to record here: nothing that may have happened is called, and what can't be judged is
unverified.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any
from uuid import UUID

from durable_pg._async.calls import AsyncCalls
from durable_pg._async.lease import AsyncLease
from durable_pg._async.waiting import called, check_callable, see_through
from durable_pg._wire.requests import (
    EffectRequest,
    RunRequest,
    described,
    failures,
    not_executed,
    recorded_error,
    refuse_unless_held,
    unverified,
)
from durable_pg.errors import ArgumentInvalid, DurableError, EffectFailed, JsonNotStorable, RunSettled, WriteOnce
from durable_pg.tools import Failed, Succeeded, Unknown, evidence, tool_of
from durable_pg.types import (
    AppendedEvent,
    BegunEffect,
    Checkpoint,
    Effect,
    FinishedEffect,
    IntentScope,
    NewEvent,
    RecordedStep,
    RunOutcome,
)

log = logging.getLogger("durable_pg")


class AsyncRun:
    """One attempt at a run, in the hands of this worker until the block ends. Made by run().

    `result`: what the run is settled with when the block ends normally. Every method raises LeaseLost as soon as the
    run is known to be another's, RunSettled when it was cancelled, or after fail() and cancel().
    """

    __module__ = "durable_pg"

    def __init__(self, lease: AsyncLease, checkpoint: tuple[int, Any] | None) -> None:
        self.result: Any = None
        self._lease = lease
        self._me = lease.me
        self._begun = lease.begun
        self._request = lease.request
        self._checkpoint = checkpoint
        # Effects that this attempt has had an answer for.
        self._answered: set[UUID] = set()

    @property
    def run_uid(self) -> UUID:
        """The run."""
        return self._begun.run_uid

    @property
    def attempt(self) -> int:
        """Which attempt this is: the fencing token of everything that is written."""
        return self._begun.attempt or 0

    @property
    def outcome(self) -> RunOutcome:
        """What start_run said, or what the run was settled with: for calls that take a run."""
        return self._lease.ended or self._begun

    @property
    def invocation_id(self) -> str:
        """The invocation that is executed."""
        return self._request.invocation_id

    @property
    def resumed(self) -> bool:
        """Whether earlier attempts have been at it."""
        return self._begun.outcome == "resumed"

    @property
    def step(self) -> int:
        """The step of the newest checkpoint; 0 where there is none."""
        return 0 if self._checkpoint is None else self._checkpoint[0]

    @property
    def state(self) -> Any:
        """The state of the newest checkpoint, as this program knows it; None where there is none."""
        return None if self._checkpoint is None else self._checkpoint[1]

    async def effect(
        self,
        tool: str,
        *,
        call: Callable[[str], Any],
        args: Mapping[str, Any] | None = None,
        step: int | None = None,
        ordinal: int = 0,
        intent: str | None = None,
        scope: IntentScope | None = None,
        args_may_differ: bool = False,
        provider_dedupes_for: timedelta | None = None,
        verify: Callable[[str], Any] | None = None,
        failed_on: type[Exception] | tuple[type[Exception], ...] = (),
        timeout: float | None = None,  # the tool's, not this method's
    ) -> Any:
        """Make `call(idempotency_key)` happen once, and return its result: recorded now, or by an earlier attempt.

        The result is recorded before it is returned. EffectFailed, raised by the tool, and `failed_on` mean that it
        certainly did not happen: recorded as failed, raised as EffectFailed, and it may be begun again. Any other
        exception, a cancellation, and no answer within `timeout` seconds leave it unverified, and are raised as they
        are. An unverified effect is never called again by itself: `verify(idempotency_key)` asks the provider by
        another channel and answers Succeeded, Failed or Unknown. `step`: without it the one after the last checkpoint.
        Without `intent` two equal calls in one step are one effect, with one result, unless `ordinal` tells them apart.
        The other parameters are those of begin_effect.

        Raises EffectUnverified, EffectInFlight, EffectDiverged with the `effect` that stands in the way, and what
        begin_effect and finish_effect raise; after an error of these nothing was called, or it is not marked as failed.
        """
        check_callable(call, "idempotency key")
        if verify is not None:
            check_callable(verify, "idempotency key")
        begin = partial(
            self._me.begin_effect,
            self._begun,
            tool,
            args,
            step=self._step(step),
            ordinal=ordinal,
            intent=intent,
            scope=scope,
            args_may_differ=args_may_differ,
            provider_dedupes_for=provider_dedupes_for,
        )
        request = EffectRequest(begin, intent is not None, call, verify, failures(failed_on), timeout)
        return await self._perform(request)

    async def call(
        self,
        tool: Callable[..., Any],
        args: Mapping[str, Any] | None = None,
        *,
        step: int | None = None,
        ordinal: int = 0,
    ) -> Any:
        """Call a function decorated with @durable_tool, with these keyword arguments, as effect() does.

        One that is read_only is called without the ledger: nothing happens that could happen twice. Raises TypeError,
        before anything is begun, for a function that is not decorated and for arguments that don't fit it.
        """
        declared = tool_of(tool)
        check_callable(declared.function)
        asked = declared.asked(args or {})
        if declared.uses_ledger:
            return await self.effect(**asked, step=step, ordinal=ordinal)
        self._lease.check()
        return await called(partial(asked["call"], ""), declared.timeout)

    async def append_event(
        self,
        author: str,
        content: Any = None,
        *,
        event_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        state_delta: Mapping[str, Any] | None = None,
        occurred_at: datetime | None = None,
        repeatable: bool = False,
        extra_tool_calls: Sequence[str] | None = None,
        expected_revision: int | None = None,
    ) -> AppendedEvent:
        """Record an event of this invocation, as this attempt; see append_event of the client."""
        with self._lease.writing():
            return await self._me.append_event(
                self._request.session,
                author,
                content,
                invocation_id=self._request.invocation_id,
                event_id=event_id,
                metadata=metadata,
                state_delta=state_delta,
                occurred_at=occurred_at,
                repeatable=repeatable,
                extra_tool_calls=extra_tool_calls,
                expected_revision=expected_revision,
                attempt=self.attempt,
            )

    async def checkpoint(self, step: int, state: Any, *, schema_version: int | None = None) -> Checkpoint:
        """Save what a later attempt starts from; see save_checkpoint. `schema_version`: without it the program's.

        Raises ArgumentInvalid (22W03) for a version that this program could not read back.
        """
        version = self._version(schema_version)
        with self._lease.writing():
            saved = await self._me.save_checkpoint(self._begun, step, state, schema_version=version)
        self._checkpoint = (saved.step, state)
        return saved

    async def record_step(
        self,
        step: int,
        *,
        events: Sequence[NewEvent] = (),
        finished: Sequence[FinishedEffect] = (),
        state: Any = None,
        schema_version: int | None = None,
    ) -> RecordedStep:
        """Append events, finish effects and save a checkpoint in one round trip, all of them or nothing."""
        version = self._version(schema_version)
        with self._lease.writing():
            recorded = await self._me.record_step(
                self._begun, step, events=events, finished=finished, state=state, schema_version=version
            )
        if state is not None:
            self._checkpoint = (recorded.step, state)
        return recorded

    async def fail(self, error: Any = None) -> RunOutcome:
        """Give the run up for good, as failed. The block may go on, but records nothing more."""
        with self._lease.writing():
            return self._lease.settled(await self._me.settle_run(self._begun, "failed", error=error))

    async def cancel(self, reason: str) -> RunOutcome:
        """Call the run off for good. The block may go on, but records nothing more."""
        with self._lease.writing():
            return self._lease.settled(await self._me.cancel_run(self._begun, reason))

    async def _perform(self, request: EffectRequest) -> Any:
        """Return the effect's result, recorded now or before. Raises as effect() says."""
        begun = await self._begin(request)
        if begun.outcome == "unverified":
            resolved = await self._verify(begun, request)
            if resolved is not None and resolved.status == "succeeded":
                return resolved.result
            # What is recorded is the answer; what certainly did not happen is begun again.
            begun = await self._begin(request)
        if begun.outcome == "execute":
            self._answered.add(begun.effect_uid)
            return await self._execute(begun, request)
        if begun.outcome == "recorded":
            if begun.effect_uid in self._answered and not request.has_intent:
                log.warning("the same call was made twice in one step and executed once; ordinal= tells two apart")
            self._answered.add(begun.effect_uid)
            return begun.result
        raise not_executed(begun)

    async def _begin(self, request: EffectRequest) -> BegunEffect:
        with self._lease.writing():
            begun: BegunEffect = await request.begin()
            return begun

    async def _execute(self, begun: BegunEffect, request: EffectRequest) -> Any:
        # A process that slept since it asked must not wake up and call: others may have been told that nobody has.
        self._lease.check_clock()
        self._lease.calling += 1
        try:
            result = await called(partial(request.call, begun.idempotency_key), request.timeout)
        except BaseException as error:
            if not request.certainly_failed(error):
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
            self._lease.calling -= 1
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
        finish = partial(self._me.finish_effect, begun, status, result=result, error=error)
        return await see_through(finish, after_cancel=self._request.patience)

    async def _leave_unverified(self, begun: BegunEffect, error: BaseException) -> None:
        try:
            await self._finish(begun, "unverified", error=described(error))
        except Exception as trouble:  # noqa: BLE001 - the tool's own exception is what the caller has to see
            # Without an outcome it reads as unverified as soon as its lease is over.
            log.warning("an effect could not be recorded as unverified: %s", type(trouble).__name__)

    async def _verify(self, begun: BegunEffect, request: EffectRequest) -> Effect | None:
        """Ask by the other channel, and record the answer; None when somebody has recorded one meanwhile."""
        if request.verify is None:
            raise not_executed(begun)
        try:
            found = await called(partial(request.verify, begun.idempotency_key), None)
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
            recorded = [row for row in await self._me.list_effects(self._begun) if row.effect_uid == begun.effect_uid]
            if recorded and recorded[0].status == "succeeded":
                return recorded[0]
            raise

    def _step(self, given: int | None) -> int:
        return self.step + 1 if given is None else given

    def _version(self, given: int | None) -> int:
        known = self._request.upgrades.version
        if given is not None and given > known:
            raise ArgumentInvalid(
                f"schema_version is {given}, and this program reads versions up to {known}",
                hint="Register upgrades with @checkpoint_upgrade, or give run() upgrades=CheckpointUpgrades(version).",
                column="schema_version",
            )
        return known if given is None else given


class AsyncRunning:
    """The block of a run: `async with me.run(...) as run`. Nothing is sent before it is entered."""

    def __init__(self, me: AsyncCalls, request: RunRequest) -> None:
        self._me = me
        self._request = request
        self._begun: tuple[AsyncLease, AsyncRun] | None = None

    async def begin(self) -> AsyncRun:
        """Start the run or take it up; the block that is entered next has it."""
        request = self._request
        if request.message is not None:
            await self._me.append_event(request.session, "user", request.message, invocation_id=request.invocation_id)
        asked_at = time.monotonic()
        begun = await self._me.start_run(
            request.session,
            request.invocation_id,
            trigger=request.trigger,
            input=request.input,
            worker=request.worker,
            lease=request.lease,
            max_attempts=request.max_attempts,
        )
        refuse_unless_held(begun, request)
        lease = AsyncLease(self._me, begun, request, asked_at)
        try:
            lease.start()
            run = AsyncRun(lease, await self._load(begun))
        except BaseException as error:
            await lease.end(None, error)
            raise
        self._begun = (lease, run)
        return run

    async def _load(self, begun: RunOutcome) -> tuple[int, Any] | None:
        """Return step and state of the newest checkpoint, as this program knows it."""
        saved = await self._me.load_checkpoint(begun) if begun.outcome == "resumed" else None
        if saved is None:
            return None
        return saved.step, self._request.upgrades.upgraded(saved.state, saved.schema_version)

    async def __aenter__(self) -> AsyncRun:
        return self._begun[1] if self._begun else await self.begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._begun:
            (lease, run), self._begun = self._begun, None
            await lease.end(run.result, error)


async def run_once(running: AsyncRunning, turn: Callable[[AsyncRun], Any]) -> Any:
    """Execute a turn, or return what it was settled with."""
    check_callable(turn)
    try:
        await running.begin()
    except RunSettled as settled:
        if settled.run is not None and settled.run.status == "succeeded":
            return settled.result
        raise
    async with running as run:
        run.result = await called(partial(turn, run), None)
    if run.outcome.status in {"failed", "cancelled"}:
        raise RunSettled(f"the run has {run.outcome.status}", run=run.outcome)
    return run.result
