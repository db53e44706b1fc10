"""JSON as it was sent: kept as text, since Python's float, int and dict would lose digits or fail on deep nesting."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Text, cast, func

_NOT_ASCII = re.compile("[^\x00-\x7f]")


@dataclass(frozen=True)
class JsonText:
    """A JSON value, as text without loss."""

    text: str

    @property
    def value(self) -> Any:
        """Return what json.loads makes of it."""
        return json.loads(self.text)


def sent(column: ColumnElement[Any]) -> ColumnElement[str | None]:
    """Select a stored JSON column as the text of what was sent."""
    return cast(func.durable.unescape_json(column), Text)


def as_json(text: str | None) -> JsonText | None:
    """Wrap what `sent` selected."""
    return None if text is None else JsonText(text)


def to_json(value: Any, *, ascii_only: bool = False) -> str:
    """Write dataclasses of this package as JSON: nothing shortened, times ISO 8601, durations in seconds,
    JSON values as they were sent.
    """
    text = _write(value)
    # Only strings hold such characters, so that escaping them anywhere is right.
    return _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text) if ascii_only else text


def _write(value: Any) -> str:
    if isinstance(value, JsonText):
        return value.text
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(key)}: {_write(found)}" for key, found in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_write, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, datetime):
        value = value.isoformat()
    elif isinstance(value, timedelta):
        value = value.total_seconds()
    elif isinstance(value, UUID):
        value = str(value)
    return json.dumps(value, ensure_ascii=False)
