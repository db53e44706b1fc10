"""What an error of Postgres says, whichever driver raised it and whether SQLAlchemy wrapped it."""

from __future__ import annotations

from typing import Any


def sqlstate(error: BaseException) -> str | None:
    """SQLSTATE of an error of psycopg, psycopg2 or asyncpg, wrapped by SQLAlchemy or not."""
    for candidate in _layers(error):
        for attribute in ("sqlstate", "pgcode"):
            found = getattr(candidate, attribute, None)
            if isinstance(found, str):
                return found
    return None


def diagnostic(error: BaseException, name: str) -> str:
    """A field of the error report: message_primary, message_detail, message_hint, statement_position."""
    asyncpg_name = {
        "message_primary": "message",
        "statement_position": "position",
        "severity_nonlocalized": "severity_en",
    }.get(name, name.removeprefix("message_"))
    for candidate in _layers(error):
        diag = getattr(candidate, "diag", None)
        found: Any = getattr(diag, name, None) if diag is not None else getattr(candidate, asyncpg_name, None)
        if isinstance(found, str):
            return found
    return ""


def _layers(error: BaseException) -> list[BaseException]:
    layers: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in layers:
        layers.append(current)
        original = getattr(current, "orig", None)
        current = original if isinstance(original, BaseException) else current.__cause__
    return list(reversed(layers))


def primary_message(error: BaseException) -> str:
    return diagnostic(error, "message_primary") or str(_layers(error)[0]).strip()
