"""Rows -> dataclasses. The fields of a dataclass are the columns of its statement, in order.

Every column comes as text, of which the field's type says what to make: a driver's own types make no difference.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar, get_origin, get_type_hints
from uuid import UUID

from durable_pg._client import codec
from durable_pg.errors import JsonNotReadable

T = TypeVar("T")
Row = Sequence[Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


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
        return codec.decode(text, field)
    except codec.NotReadable as fault:
        raise JsonNotReadable(
            f"{fault.field} can't be read here", detail=fault.reason, hint="Read this value in SQL."
        ) from None
