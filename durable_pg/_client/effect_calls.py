"""The calls about effects and tools; see calls.py."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from durable_pg._client import parameters as given
from durable_pg._client.calls import Call, Who, listing, named, writing, writing_several
from durable_pg.types import BegunEffect, Effect, Tool


@named
def begin_effect(
    who: Who,
    run: object,
    tool: str,
    args: Mapping[str, Any] | None,
    *,
    step: int,
    ordinal: int,
    intent: str | None,
    scope: str | None,
    args_may_differ: bool,
    lease: timedelta | None,
    provider_dedupes_for: timedelta | None,
    attempt: int | None,
) -> Call[BegunEffect]:
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
    return writing("begin_effect", who, parameters, BegunEffect, repeatable=False)


@named
def finish_effect(
    who: Who, effect: object, status: str, *, result: Any, error: Any, attempt: int | None
) -> Call[Effect]:
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
    return writing("finish_effect", who, parameters, Effect, repeatable=True)


@named
def resolve_effect(
    who: Who,
    effect: object,
    status: str,
    evidence: Mapping[str, Any],
    *,
    result: Any,
    as_of: datetime | None,
) -> Call[Effect]:
    if as_of is None and isinstance(effect, (BegunEffect, Effect)):
        as_of = effect.begun_at
    parameters = {
        "effect_uid": given.effect_uid(effect),
        "status": given.text("status", status),
        "evidence": given.an_object("evidence", evidence),
        "result": given.optional_json("result", result),
        "as_of": given.optional_time("as_of", as_of),
    }
    return writing("resolve_effect", who, parameters, Effect, repeatable=True)


@named
def list_effects(who: Who, run: object, status: str | None) -> Call[list[Effect]]:
    parameters = {"run_uid": given.optional_run_uid(run), "status": given.optional_text("status", status)}
    return listing("list_effects", who, parameters, Effect)


@named
def declare_tools(who: Who, app_name: str, tools: Mapping[str, Any]) -> Call[list[Tool]]:
    parameters = {"app_name": given.identifier("app_name", app_name), "tools": given.an_object("tools", tools)}
    return writing_several("declare_tools", who, parameters, Tool)


@named
def set_tool(who: Who, app_name: str, tool: str, *, replay_class: str, reason: str) -> Call[Tool]:
    parameters = {
        "app_name": given.identifier("app_name", app_name),
        "tool": given.identifier("tool", tool),
        "replay_class": given.text("replay_class", replay_class),
        "reason": given.text("reason", reason),
    }
    return writing("set_tool", who, parameters, Tool, repeatable=True)


@named
def list_tools(who: Who, app_name: str | None) -> Call[list[Tool]]:
    return listing("list_tools", who, {"app_name": given.optional_identifier("app_name", app_name)}, Tool)
