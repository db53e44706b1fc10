"""What one user may do with effects and tools. One method a function of the SQL interface."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from durable_pg._async.calls.caller import AsyncCaller
from durable_pg._wire import values as given
from durable_pg._wire.statements import Who, listing, refusals_of, writing, writing_several
from durable_pg.types import AnyEffect, AnyRun, BegunEffect, Effect, EffectStatus, IntentScope, ReplayClass, Tool


class AsyncEffects(AsyncCaller[Who]):
    """The calls about effects. effect() of a run makes them by itself.

    On a connection of the caller's, begin and finish join its transaction: for an effect that is itself a write in this
    database that is exactly once. For one outside, begin_effect must be committed before the tool is called.
    """

    async def begin_effect(
        self,
        run: AnyRun,
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
        with refusals_of("begin_effect", self._who):
            parameters = {
                "run_uid": given.run_uid(run),
                "attempt": given.token(run, attempt),
                "step": given.integer("step", step),
                "tool": given.identifier("tool", tool),
                "args": given.optional_object("args", args),
                "ordinal": given.integer("ordinal", ordinal),
                "intent": given.optional_identifier("intent", intent),
                "scope": given.optional_text("scope", scope),
                "args_may_differ": given.boolean("args_may_differ", args_may_differ),
                "lease": given.optional_span("lease", lease),
                "provider_dedupes_for": given.optional_span("provider_dedupes_for", provider_dedupes_for),
            }
        # Sent twice, the second answer would be in_flight, and nobody would execute the effect.
        return await self._fetch(writing("begin_effect", self._who, parameters, BegunEffect, repeatable=False))

    async def finish_effect(
        self,
        effect: AnyEffect,
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
        with refusals_of("finish_effect", self._who):
            if attempt is None and isinstance(effect, BegunEffect) and effect.outcome == "execute":
                attempt = effect.attempt
            parameters = {
                "effect_uid": given.effect_uid(effect),
                # Whose attempt: runs count theirs alike.
                "run_uid": str(effect.run_uid) if isinstance(effect, BegunEffect) else None,
                "attempt": given.optional_integer("attempt", attempt),
                "status": given.text("status", status),
                "result": given.optional_json("result", result),
                "error": given.optional_json("error", error),
            }
        return await self._fetch(writing("finish_effect", self._who, parameters, Effect, repeatable=True))

    async def resolve_effect(
        self,
        effect: AnyEffect,
        status: Literal["succeeded", "failed"],
        evidence: Mapping[str, Any],
        *,
        result: Any = None,
        as_of: datetime | None = None,
    ) -> Effect:
        """Say what became of an unverified effect; outcome resolved, or already_resolved for an equal repeat.

        `evidence`: {"channel": by which it was found out, "seen": what was seen there}. `as_of`: what was begun again
        since is not resolved; taken from a BegunEffect or Effect. Leaves an audit row. An operator may resolve those of
        its tenant.

        Raises JsonNotStorable (22W02), ArgumentInvalid (22W03), WriteOnce (23W02), EffectNotFound (42W07),
        EffectInFlight (55W09).
        """
        with refusals_of("resolve_effect", self._who):
            if as_of is None and isinstance(effect, (BegunEffect, Effect)):
                as_of = effect.begun_at
            parameters = {
                "effect_uid": given.effect_uid(effect),
                "status": given.text("status", status),
                "evidence": given.an_object("evidence", evidence),
                "result": given.optional_json("result", result),
                "as_of": given.optional_time("as_of", as_of),
            }
        return await self._fetch(writing("resolve_effect", self._who, parameters, Effect, repeatable=True))

    async def list_effects(self, run: AnyRun | None = None, status: EffectStatus | None = None) -> list[Effect]:
        """The effects, of one run or of all, of one status or of all, newest first.

        Raises ArgumentInvalid (22W03), RunNotFound (42W05).
        """
        with refusals_of("list_effects", self._who):
            parameters = {"run_uid": given.optional_run_uid(run), "status": given.optional_text("status", status)}
        return await self._fetch(listing("list_effects", self._who, parameters, Effect))

    async def list_tools(self, app_name: str | None = None) -> list[Tool]:
        """What is known of tools, of one app or of all; a tool that is not listed counts as an effect."""
        with refusals_of("list_tools", self._who):
            parameters = {"app_name": given.optional_identifier("app_name", app_name)}
        return await self._fetch(listing("list_tools", self._who, parameters, Tool))

    async def declare_tools(self, app_name: str, tools: Mapping[str, ReplayClass]) -> list[Tool]:
        """Write what a program declares of its tools; where what is stored is stricter, that is kept.

        `tools`: {"refund": "keyed", "search": "read_only"}; see declarations() of durable_pg.tools. For operators;
        leaves audit rows. Raises IdentifierInvalid (22W01), JsonNotStorable (22W02), ArgumentInvalid (22W03).
        """
        with refusals_of("declare_tools", self._who):
            parameters = {"app_name": given.identifier("app_name", app_name), "tools": given.an_object("tools", tools)}
        return await self._fetch(writing_several("declare_tools", self._who, parameters, Tool))

    async def set_tool(self, app_name: str, tool: str, *, replay_class: ReplayClass, reason: str) -> Tool:
        """Say what a tool is like, stricter or looser than before, and why. For operators; leaves an audit row.

        Raises IdentifierInvalid (22W01), ArgumentInvalid (22W03).
        """
        with refusals_of("set_tool", self._who):
            parameters = {
                "app_name": given.identifier("app_name", app_name),
                "tool": given.identifier("tool", tool),
                "replay_class": given.text("replay_class", replay_class),
                "reason": given.text("reason", reason),
            }
        return await self._fetch(writing("set_tool", self._who, parameters, Tool, repeatable=True))
