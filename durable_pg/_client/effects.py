# Generated from effects_async.py by tools/async_to_sync.py: change that.
"""What one user may do with effects and tools. One method a function of the SQL interface."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from durable_pg._client import effect_calls, io
from durable_pg._client.sessions import Caller
from durable_pg.types import BegunEffect, Effect, EffectStatus, IntentScope, ReplayClass, Run, RunOutcome, Tool


class Effects(Caller):
    """The calls about effects. effect() of a run makes them by itself.

    On a connection of the caller's, begin and finish join its transaction: for an effect that is itself a write in this
    database that is exactly once. For one outside, begin_effect must be committed before the tool is called.
    """

    def begin_effect(
        self,
        run: RunOutcome | Run | UUID | str,
        tool: str,
        args: Mapping[str, Any] | None = None,
        *,
        step: int = 0,
        ordinal: int = 0,
        intent: str | None = None,
        scope: IntentScope | None = None,
        args_may_differ: bool = False,
        lease: timedelta | None = None,
        provider_dedupes_for: timedelta | None = None,
        attempt: int | None = None,
    ) -> BegunEffect:
        """Ask whether to call a tool: yes when outcome is execute, under the row's idempotency_key.

        Its name is run, step, tool, args and ordinal, or with an `intent` the user (or `scope`), the app and the
        intent, across runs. `args_may_differ`: under an intent, other arguments are answered as well and not refused.
        `lease`: after so long without an outcome it reads as unverified; without it, as long as the run's.
        `provider_dedupes_for`: for so long the same key may be sent again.

        Never sent twice by itself: the second answer to a lost first one would be in_flight. Told ConnectionLost, begin
        it again once the lease is over. Raises IdentifierInvalid (22W01), JsonNotStorable (22W02), ArgumentInvalid
        (22W03), EffectPayloadDiffers (23W10), RunNotFound (42W05), RunSettled (55W03), LeaseLost (55W04),
        IsolationRefused (55W05).
        """
        call = effect_calls.begin_effect(
            self._who,
            run,
            tool,
            args,
            step=step,
            ordinal=ordinal,
            intent=intent,
            scope=scope,
            args_may_differ=args_may_differ,
            lease=lease,
            provider_dedupes_for=provider_dedupes_for,
            attempt=attempt,
        )
        return io.run(self._way, call)

    def finish_effect(
        self,
        effect: BegunEffect | Effect | UUID | str,
        status: Literal["succeeded", "failed", "unverified"],
        *,
        result: Any = None,
        error: Any = None,
        attempt: int | None = None,
    ) -> Effect:
        """Record what came of an effect; outcome finished, or already_finished for an equal repeat.

        `failed`: it certainly did not happen, and may be begun again. `attempt`: taken from begin_effect's answer when
        that said execute. A late true outcome is taken as long as nobody has begun it again.

        Raises JsonNotStorable (22W02), ArgumentInvalid (22W03), WriteOnce (23W02), EffectNotFound (42W07), LeaseLost
        (55W04).
        """
        call = effect_calls.finish_effect(self._who, effect, status, result=result, error=error, attempt=attempt)
        return io.run(self._way, call)

    def resolve_effect(
        self,
        effect: BegunEffect | Effect | UUID | str,
        status: Literal["succeeded", "failed"],
        evidence: Mapping[str, Any],
        *,
        result: Any = None,
        as_of: datetime | None = None,
    ) -> Effect:
        """Say what became of an unverified effect; outcome resolved, or already_resolved for an equal repeat.

        `evidence`: {"channel": by which it was found out, "seen": what was seen there}. `as_of`: what was begun again
        since is not resolved; taken from a BegunEffect or Effect. Leaves an audit row. An
        operator may resolve those of its tenant. Raises JsonNotStorable (22W02), ArgumentInvalid (22W03), WriteOnce
        (23W02), EffectNotFound (42W07), EffectInFlight (55W09).
        """
        return io.run(
            self._way, effect_calls.resolve_effect(self._who, effect, status, evidence, result=result, as_of=as_of)
        )

    def list_effects(
        self, run: RunOutcome | Run | UUID | str | None = None, status: EffectStatus | None = None
    ) -> list[Effect]:
        """The effects, of one run or of all, of one status or of all, newest first.

        Raises ArgumentInvalid (22W03), RunNotFound (42W05).
        """
        return io.run(self._way, effect_calls.list_effects(self._who, run, status))

    def list_tools(self, app_name: str | None = None) -> list[Tool]:
        """What is known of tools, of one app or of all; a tool that is not listed counts as an effect."""
        return io.run(self._way, effect_calls.list_tools(self._who, app_name))

    def declare_tools(self, app_name: str, tools: Mapping[str, ReplayClass]) -> list[Tool]:
        """Write what a program declares of its tools; where what is stored is stricter, that is kept.

        `tools`: {"refund": "keyed", "search": "read_only"}; see declarations() of tool_registry. For operators; leaves
        audit rows. Raises IdentifierInvalid (22W01), JsonNotStorable (22W02), ArgumentInvalid (22W03).
        """
        return io.run(self._way, effect_calls.declare_tools(self._who, app_name, tools))

    def set_tool(self, app_name: str, tool: str, *, replay_class: ReplayClass, reason: str) -> Tool:
        """Say what a tool is like, stricter or looser than before, and why. For operators; leaves an audit row.

        Raises IdentifierInvalid (22W01), ArgumentInvalid (22W03).
        """
        call = effect_calls.set_tool(self._who, app_name, tool, replay_class=replay_class, reason=reason)
        return io.run(self._way, call)
