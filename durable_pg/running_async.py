"""Runs: started or taken up, held by a lease, executed, and settled or given back, whatever happens in between.

running.py is generated from running_async.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any
from uuid import UUID

from durable_pg._client.asked import Asked, refuse_unless_held
from durable_pg._client.calling import called_async, check_callable_async
from durable_pg._client.grip_async import AsyncGrip
from durable_pg._client.wanted import Wanted, failures
from durable_pg.errors import ArgumentInvalid, RunSettled
from durable_pg.tool_registry import tool_of
from durable_pg.types import (
    AppendedEvent,
    Checkpoint,
    FinishedEffect,
    IntentScope,
    NewEvent,
    RecordedStep,
    RunOutcome,
)

if TYPE_CHECKING:
    from durable_pg.client_async import AsyncIdentity

__all__ = ["AsyncRun", "AsyncRunning"]


class AsyncRun:
    """One attempt at a run, in the hands of this worker until the block ends. Made by run().

    `result`: what the run is settled with when the block ends normally. Every method raises LeaseLost as soon as the
    run is known to be another's, RunSettled when it was cancelled, or after fail() and cancel().
    """

    def __init__(self, grip: AsyncGrip, checkpoint: tuple[int, Any] | None) -> None:
        self.result: Any = None
        self._grip = grip
        self._hold = grip.hold
        self._begun = grip.begun
        self._checkpoint = checkpoint

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
        return self._hold.ended or self._begun

    @property
    def invocation_id(self) -> str:
        """The invocation that is executed."""
        return self._grip.asked.invocation_id

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
        check_callable_async(call, "idempotency key")
        if verify is not None:
            check_callable_async(verify, "idempotency key")
        wanted = Wanted(
            tool=tool,
            args=args,
            step=self._step(step),
            ordinal=ordinal,
            intent=intent,
            scope=scope,
            args_may_differ=args_may_differ,
            provider_dedupes_for=provider_dedupes_for,
            call=call,
            verify=verify,
            failed_on=failures(failed_on),
            timeout=timeout,
        )
        return await self._grip.performing.perform(wanted)

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
        check_callable_async(declared.function)
        wanted = declared.wanted(args or {}, step=self._step(step), ordinal=ordinal)
        if declared.uses_ledger:
            return await self._grip.performing.perform(wanted)
        self._hold.check()
        return await called_async(partial(wanted.call, ""), wanted.timeout)

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
        with self._hold.writing():
            return await self._grip.me.append_event(
                self._grip.asked.session,
                author,
                content,
                invocation_id=self._grip.asked.invocation_id,
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
        with self._hold.writing():
            saved = await self._grip.me.save_checkpoint(self._begun, step, state, schema_version=version)
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
        with self._hold.writing():
            recorded = await self._grip.me.record_step(
                self._begun, step, events=events, finished=finished, state=state, schema_version=version
            )
        if state is not None:
            self._checkpoint = (recorded.step, state)
        return recorded

    async def fail(self, error: Any = None) -> RunOutcome:
        """Give the run up for good, as failed. The block may go on, but records nothing more."""
        with self._hold.writing():
            return self._grip.settled(await self._grip.me.settle_run(self._begun, "failed", error=error))

    async def cancel(self, reason: str) -> RunOutcome:
        """Call the run off for good. The block may go on, but records nothing more."""
        with self._hold.writing():
            return self._grip.settled(await self._grip.me.cancel_run(self._begun, reason))

    def _step(self, given: int | None) -> int:
        return self.step + 1 if given is None else given

    def _version(self, given: int | None) -> int:
        known = self._grip.asked.upgrades.version
        if given is not None and given > known:
            raise ArgumentInvalid(
                f"schema_version is {given}, and this program reads versions up to {known}",
                hint="Register upgrades with @checkpoint_upgrade, or give run() upgrades=CheckpointUpgrades(version).",
                column="schema_version",
            )
        return known if given is None else given


class AsyncRunning:
    """The block of a run: `async with me.run(...) as run`. Nothing is sent before it is entered."""

    def __init__(self, me: AsyncIdentity, asked: Asked) -> None:
        self._me = me
        self._asked = asked
        self._begun: tuple[AsyncGrip, AsyncRun] | None = None

    async def begin(self) -> AsyncRun:
        """Start the run or take it up; the block that is entered next has it."""
        asked = self._asked
        if asked.message is not None:
            await self._me.append_event(asked.session, "user", asked.message, invocation_id=asked.invocation_id)
        asked_at = time.monotonic()
        begun = await self._me.start_run(
            asked.session,
            asked.invocation_id,
            trigger=asked.trigger,
            input=asked.input,
            worker=asked.worker,
            lease=asked.lease,
            max_attempts=asked.max_attempts,
        )
        refuse_unless_held(begun, asked)
        grip = AsyncGrip(self._me, begun, asked, asked_at)
        try:
            grip.start()
            run = AsyncRun(grip, await grip.load())
        except BaseException as error:
            await grip.end(None, error)
            raise
        self._begun = (grip, run)
        return run

    async def __aenter__(self) -> AsyncRun:
        return self._begun[1] if self._begun else await self.begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._begun:
            (grip, run), self._begun = self._begun, None
            await grip.end(run.result, error)


async def run_once_async(running: AsyncRunning, turn: Callable[[AsyncRun], Any]) -> Any:
    """Execute a turn, or return what it was settled with."""
    check_callable_async(turn)
    try:
        await running.begin()
    except RunSettled as settled:
        if settled.run is not None and settled.run.status == "succeeded":
            return settled.result
        raise
    async with running as run:
        run.result = await called_async(partial(turn, run), None)
    if run.outcome.status in {"failed", "cancelled"}:
        raise RunSettled(f"the run has {run.outcome.status}", run=run.outcome)
    return run.result
