"""What a tool and a verifier say of an outside effect. The exceptions are in durable_pg.errors as well."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from durable_pg.errors import (
    EffectDiverged,
    EffectError,
    EffectFailed,
    EffectInFlight,
    EffectTimedOut,
    EffectUnverified,
)

__all__ = [
    "EffectDiverged",
    "EffectError",
    "EffectFailed",
    "EffectInFlight",
    "EffectTimedOut",
    "EffectUnverified",
    "Failed",
    "Succeeded",
    "Unknown",
    "Verdict",
]


@dataclass(frozen=True)
class Succeeded:
    """A verifier's answer: it happened, with this result. `channel`: where it looked; `seen`: what it saw there."""

    result: Any = None
    _: KW_ONLY
    channel: str
    seen: str


@dataclass(frozen=True)
class Failed:
    """A verifier's answer: it certainly did not happen, and won't any more; so it may be executed again."""

    error: Any = None
    _: KW_ONLY
    channel: str
    seen: str


@dataclass(frozen=True)
class Unknown:
    """A verifier's answer: that can't be told (yet)."""


Verdict = Succeeded | Failed | Unknown
