"""What the tables of `tables` are made of."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, MetaData
from sqlalchemy.dialects.postgresql import TIMESTAMP

metadata = MetaData(schema="durable")


def always(name: str, type_: Any) -> Column[Any]:
    """Return a column that is never NULL."""
    return Column(name, type_, nullable=False)


def maybe(name: str, type_: Any) -> Column[Any]:
    """Return a column that may be NULL."""
    return Column(name, type_, nullable=True)


def time() -> TIMESTAMP:
    """Return the type timestamptz."""
    return TIMESTAMP(timezone=True)
