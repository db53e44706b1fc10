"""The calls about checkpoints and steps; see calls.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from durable_pg._client import parameters as given
from durable_pg._client.calls import Call, Who, finding, named, writing
from durable_pg.errors import ArgumentInvalid
from durable_pg.types import Checkpoint, FinishedEffect, NewEvent, RecordedStep


@named
def save_checkpoint(
    who: Who, run: object, step: int, state: Any, *, schema_version: int, attempt: int | None
) -> Call[Checkpoint]:
    parameters = {
        "run_uid": given.run_uid(run),
        "attempt": given.token(run, attempt),
        "step": given.integer("step", step),
        "state": given.optional_json("state", state),
        "schema_version": given.integer("schema_version", schema_version),
    }
    return writing("save_checkpoint", who, parameters, Checkpoint, repeatable=True)


@named
def load_checkpoint(who: Who, run: object) -> Call[Checkpoint | None]:
    return finding("load_checkpoint", who, {"run_uid": given.run_uid(run)}, Checkpoint)


@named
def record_step(
    who: Who,
    run: object,
    step: int,
    *,
    events: Sequence[NewEvent],
    finished: Sequence[FinishedEffect],
    state: Any,
    schema_version: int,
    attempt: int | None,
) -> Call[RecordedStep]:
    new = [_event(place, event) for place, event in enumerate(given.objects("events", events))]
    ended = [_finished(place, effect) for place, effect in enumerate(given.objects("finished", finished))]
    parameters = {
        "run_uid": given.run_uid(run),
        "attempt": given.token(run, attempt),
        "step": given.integer("step", step),
        "events": given.optional_json("events", new),
        "finished": given.optional_json("finished", ended),
        "state": given.optional_json("state", state),
        "schema_version": given.integer("schema_version", schema_version),
    }
    # An event without a name would be appended again.
    repeatable = all(event.get("event_id") for event in new)
    return writing("record_step", who, parameters, RecordedStep, repeatable=repeatable)


def _event(place: int, event: dict[str, Any]) -> dict[str, Any]:
    if "author" not in event:
        raise _missing(f"events[{place}].author", "events")
    if "occurred_at" in event:
        event["occurred_at"] = given.optional_time(f"events[{place}].occurred_at", event["occurred_at"])
    return _plain(event)


def _finished(place: int, effect: dict[str, Any]) -> dict[str, Any]:
    for field in ("effect_uid", "status"):
        if field not in effect:
            raise _missing(f"finished[{place}].{field}", "finished")
    return _plain({**effect, "effect_uid": given.effect_uid(effect["effect_uid"], f"finished[{place}].effect_uid")})


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Take sequences and mappings as append_event does."""
    for name, kind in (("metadata", dict), ("state_delta", dict), ("extra_tool_calls", list)):
        if name in fields and not isinstance(fields[name], (dict, list, str)):
            fields[name] = kind(fields[name])
    return fields


def _missing(field: str, column: str) -> ArgumentInvalid:
    return ArgumentInvalid(f"{field} is missing", hint=f"Give it in each of {column}.", column=column)
