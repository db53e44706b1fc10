"""The statements of queries.sql, by the name of the function that each calls."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from typing_extensions import LiteralString

_NAME = re.compile(r"^-- (\w+)\n", re.MULTILINE)
_PARAMETER = re.compile(r"%\((\w+)\)s::([a-z]+(?:\[\])?)")


def _load() -> dict[str, LiteralString]:
    text = resources.files("durable_pg").joinpath("queries.sql").read_text(encoding="utf-8")
    _, *parts = _NAME.split(text)
    found = {name: body.strip().removesuffix(";") for name, body in zip(parts[::2], parts[1::2], strict=True)}
    # psycopg wants what nobody could have put together at run time: a file of this package is that.
    return cast("dict[str, LiteralString]", found)


QUERIES = _load()


def with_colons(statement: str) -> str:
    """The statement with :name for %(name)s, and cast() for ::, which text() of SQLAlchemy misreads after a name."""
    return _PARAMETER.sub(r"cast(:\1 as \2)", statement)
