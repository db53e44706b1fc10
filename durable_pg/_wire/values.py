"""Python's values and the database's: what a call is given -> the parameters that are sent; rows -> dataclasses.

Sent are text, uuids as text, integers, JSON text, times as ISO 8601 text. Refused here is only what could not be sent
as it is meant: another type, a character that no Postgres text holds. All other limits are the database's own.
Every column comes back as text, of which the field's type says what to make: a driver's own types make no difference.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar, get_origin, get_type_hints
from uuid import UUID

from durable_pg._wire import json_text
from durable_pg.errors import ArgumentInvalid, IdentifierInvalid, JsonNotReadable, JsonNotStorable
from durable_pg.types import (
    BegunEffect,
    Effect,
    FinishedEffect,
    NewEvent,
    ResumableRun,
    RunOutcome,
    RunRow,
    Session,
)

T = TypeVar("T")
Row = Sequence[Any]

# Postgres counts to here in revision, seq, attempt.
_LARGEST = 2**31 - 1
# And a span of time in microseconds to here.
_LONGEST = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")


def identifier(field: str, value: object) -> str:
    """A name that must be given."""
    if not isinstance(value, str):
        raise _wrong_type(field, value, "a str", IdentifierInvalid)
    return _plain(field, value, IdentifierInvalid)


def optional_identifier(field: str, value: object) -> str | None:
    return None if value is None else identifier(field, value)


def text(field: str, value: object, wanted: str = "a str") -> str:
    if not isinstance(value, str):
        raise _wrong_type(field, value, wanted)
    return _plain(field, value, ArgumentInvalid)


def optional_text(field: str, value: object) -> str | None:
    return None if value is None else text(field, value, "a str or None")


def optional_names(field: str, value: Sequence[str] | None) -> list[str] | None:
    """Names of tools. A str is a sequence too, and never meant."""
    if value is None:
        return None
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise _wrong_type(field, value, "a list of str, or None")
    return [text(f"{field}[{place}]", name) for place, name in enumerate(value)]


def optional_integer(field: str, value: object) -> int | None:
    return None if value is None else integer(field, value, "an int or None")


def integer(field: str, value: object, wanted: str = "an int") -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong_type(field, value, wanted)
    if not -_LARGEST <= value <= _LARGEST:
        raise ArgumentInvalid(
            f"{field} is out of range", detail=f"limit {_LARGEST}", hint="Pass what a call has returned.", column=field
        )
    return int(value)


def boolean(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong_type(field, value, "a bool")
    return value


def optional_time(field: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise _wrong_type(field, value, "a datetime with a time zone, or None")
    if value.utcoffset() is None:
        raise ArgumentInvalid(
            f"{field} has no time zone", hint="Pass datetime.now(timezone.utc) or give it a tzinfo.", column=field
        )
    try:
        # In UTC: Postgres takes no offset with a fraction of a second, and would store what no datetime can hold.
        return datetime.isoformat(value.astimezone(timezone.utc))
    except OverflowError:
        raise ArgumentInvalid(
            f"{field} is out of range", hint="Pass a time of the years 1 to 9999 in UTC.", column=field
        ) from None


def optional_span(field: str, value: object) -> str | None:
    return None if value is None else span(field, value, "a timedelta or None")


def span(field: str, value: object, wanted: str = "a timedelta") -> str:
    """How long, to the microsecond."""
    if not isinstance(value, timedelta):
        raise _wrong_type(field, value, wanted)
    microseconds = value // timedelta(microseconds=1)
    if abs(microseconds) > _LONGEST:
        raise ArgumentInvalid(f"{field} is out of range", hint="Pass a shorter timedelta.", column=field)
    seconds, rest = divmod(abs(microseconds), 1_000_000)
    # Older servers take no large numbers of microseconds.
    return f"{'-' if microseconds < 0 else ''}{seconds}.{rest:06} seconds"


def pool_sizes(min_size: Any, max_size: Any, timeout: Any) -> dict[str, Any]:
    """How large a pool is and how long it waits, as psycopg_pool calls it."""
    for field, value, least in (("min_size", min_size, 0), ("max_size", max_size, 1)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong_type(field, value, "an int")
        if value < least:
            raise ArgumentInvalid(f"{field} is {value}", hint=f"Pass {least} or more connections.", column=field)
    if max_size < min_size:
        hint = "Pass at least as many for max_size as for min_size."
        raise ArgumentInvalid(f"max_size is {max_size}, min_size {min_size}", hint=hint, column="max_size")
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool):
        raise _wrong_type("timeout", timeout, "seconds, as an int or a float")
    if not timeout > 0:
        raise ArgumentInvalid(f"timeout is {timeout}", hint="Pass more than 0 seconds.", column="timeout")
    return {"min_size": min_size, "max_size": max_size, "timeout": timeout}


def session_uid(value: object) -> str:
    return _uid("session", value.session_uid if isinstance(value, Session) else value, "a Session")


def optional_session_uid(value: object) -> str | None:
    return None if value is None else session_uid(value)


def run_uid(value: object) -> str:
    if isinstance(value, (RunRow, RunOutcome, ResumableRun)):
        value = value.run_uid
    return _uid("run", value, "a Run, a RunOutcome")


def optional_run_uid(value: object) -> str | None:
    return None if value is None else run_uid(value)


def effect_uid(value: object, field: str = "effect") -> str:
    if isinstance(value, (BegunEffect, Effect)):
        value = value.effect_uid
    return _uid(field, value, "a BegunEffect, an Effect")


def token(run: object, attempt: object) -> int | None:
    """The attempt to write as: the one that start_run gave, unless another one is named."""
    if attempt is None and isinstance(run, RunOutcome):
        if run.outcome in {"busy", "awaiting"}:
            raise ArgumentInvalid(
                f"run is {'executed by' if run.outcome == 'busy' else 'waiting for'} somebody else",
                hint=f"start_run said {run.outcome}: leave it alone.",
                column="run",
            )
        attempt = run.attempt
    return optional_integer("attempt", attempt)


def an_object(field: str, value: object) -> str:
    if value is None:
        raise _wrong_type(field, value, "a dict")
    return optional_object(field, value) or ""


def optional_object(field: str, value: object) -> str | None:
    """JSON text of a mapping with str keys."""
    if value is not None and not isinstance(value, Mapping):
        raise _wrong_type(field, value, "a dict or None")
    return optional_json(field, value if value is None or isinstance(value, dict) else dict(value))


def optional_json(field: str, value: Any) -> str | None:
    """JSON text; None is SQL's NULL: not given."""
    if value is None:
        return None
    try:
        return json_text.encode(value, field)
    except json_text.NotStorable as fault:
        raise JsonNotStorable(
            f"{fault.path} can't be stored exactly", detail=fault.reason, hint=fault.hint, column=field
        ) from None


def new_events(values: Sequence[NewEvent]) -> list[dict[str, Any]]:
    """The `events` of record_step."""
    return [_new_event(place, event) for place, event in enumerate(_objects("events", values))]


def finished_effects(values: Sequence[FinishedEffect]) -> list[dict[str, Any]]:
    """The `finished` of record_step."""
    return [_finished_effect(place, effect) for place, effect in enumerate(_objects("finished", values))]


def _objects(field: str, values: object) -> list[dict[str, Any]]:
    """A list of mappings, of which what is None counts as left out."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise _wrong_type(field, values, "a list of dicts")
    for place, value in enumerate(values):
        if not isinstance(value, Mapping):
            raise _wrong_type(f"{field}[{place}]", value, "a dict")
    return [{key: member for key, member in value.items() if member is not None} for value in values]


def _new_event(place: int, event: dict[str, Any]) -> dict[str, Any]:
    if "author" not in event:
        raise _missing(f"events[{place}].author", "events")
    if "occurred_at" in event:
        event["occurred_at"] = optional_time(f"events[{place}].occurred_at", event["occurred_at"])
    return _as_json(event)


def _finished_effect(place: int, effect: dict[str, Any]) -> dict[str, Any]:
    for field in ("effect_uid", "status"):
        if field not in effect:
            raise _missing(f"finished[{place}].{field}", "finished")
    return _as_json({**effect, "effect_uid": effect_uid(effect["effect_uid"], f"finished[{place}].effect_uid")})


def _as_json(fields: dict[str, Any]) -> dict[str, Any]:
    """Take sequences and mappings as append_event does."""
    for name, kind in (("metadata", dict), ("state_delta", dict), ("extra_tool_calls", list)):
        if name in fields and not isinstance(fields[name], (dict, list, str)):
            fields[name] = kind(fields[name])
    return fields


def _missing(field: str, column: str) -> ArgumentInvalid:
    return ArgumentInvalid(f"{field} is missing", hint=f"Give it in each of {column}.", column=column)


def _uid(field: str, value: object, kind: str) -> str:
    if isinstance(value, UUID):
        return str(value)
    if not isinstance(value, str):
        raise _wrong_type(field, value, f"{kind}, a UUID or its text")
    try:
        return str(UUID(value))
    except ValueError:
        raise ArgumentInvalid(
            f"{field} is no uuid", hint=f"Pass {kind}, or the uid that the database issued.", column=field
        ) from None


def _plain(field: str, value: str, error: type[ArgumentInvalid | IdentifierInvalid]) -> str:
    found = _NOT_TEXT.search(value)
    if found:
        what = "a NUL character" if found[0] == "\x00" else "half a surrogate pair"
        raise error(
            f"{field} contains {what}",
            detail=f"field {field}, character {found.start() + 1} of {len(value)}",
            hint="Postgres can't hold it in text: leave it out, or encode the name.",
            column=field,
        )
    # Not str(value): a str that is an enum's member would say its name.
    return str.__str__(value)


def _wrong_type(
    field: str, value: object, wanted: str, error: type[ArgumentInvalid | IdentifierInvalid] = ArgumentInvalid
) -> ArgumentInvalid | IdentifierInvalid:
    return error(f"{field} is of type {type(value).__name__}", hint=f"Pass {wanted}.", column=field)


def reader(kind: type[T]) -> Callable[[Row], T]:
    """The function that makes a `kind` of a row."""
    hints = get_type_hints(kind)
    converters = [_converter(field.name, hints[field.name]) for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # a dataclass

    def read(row: Row) -> T:
        return kind(
            *(None if value is None else convert(_text(value)) for convert, value in zip(converters, row, strict=True))
        )

    return read


def _text(value: str | bytes) -> str:
    # psycopg leaves text undecoded where client_encoding is SQL_ASCII; the database's encoding is UTF8.
    return value if isinstance(value, str) else bytes(value).decode()


def _converter(name: str, hint: Any) -> Callable[[str], Any]:
    if hint is Any or get_origin(hint) is dict:
        return lambda text: _json_of(text, name)
    if hint in (datetime, datetime | None):
        return _time_of
    return _BY_TYPE.get(hint, str)


def _true(text: str) -> bool:
    return text == "true"


_BY_TYPE: dict[Any, Callable[[str], Any]] = {
    UUID: UUID,
    int: int,
    int | None: int,
    UUID | None: UUID,
    bool: _true,
    bool | None: _true,
    bytes: bytes.fromhex,
    list[int]: json.loads,
    list[str]: json.loads,
    list[str] | None: json.loads,
}


def _time_of(seconds: str) -> datetime:
    # Always with six digits after the point; the database takes no time that a datetime couldn't hold.
    return _EPOCH + timedelta(microseconds=int(seconds.replace(".", "")))


def _json_of(text: str, field: str) -> Any:
    try:
        return json_text.decode(text, field)
    except json_text.NotReadable as fault:
        raise JsonNotReadable(
            f"{fault.field} can't be read here", detail=fault.reason, hint="Read this value in SQL."
        ) from None
