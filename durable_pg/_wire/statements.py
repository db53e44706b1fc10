"""The statements of queries.sql, and a call of one: what is sent, and what is made of the rows that come back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from durable_pg._wire.values import Row, identifier, reader
from durable_pg.errors import BadInput

if TYPE_CHECKING:
    from typing_extensions import LiteralString

T = TypeVar("T")

_NAME = re.compile(r"^-- (\w+)\n", re.MULTILINE)
_PARAMETER = re.compile(r"%\((\w+)\)s::([a-z]+(?:\[\])?)")


def _load() -> dict[str, LiteralString]:
    text = resources.files(__package__).joinpath("queries.sql").read_text(encoding="utf-8")
    _, *parts = _NAME.split(text)
    found = {name: body.strip().removesuffix(";") for name, body in zip(parts[::2], parts[1::2], strict=True)}
    # psycopg wants what nobody could have put together at run time: a file of this package is that.
    return cast("dict[str, LiteralString]", found)


QUERIES = _load()


def with_colons(statement: str) -> str:
    """The statement with :name for %(name)s, and cast() for ::, which text() of SQLAlchemy misreads after a name."""
    return _PARAMETER.sub(r"cast(:\1 as \2)", statement)


# Which parameters are names; all others are content or settings and never leave a call but for the database.
_NAMES = (
    *("tenant_id", "user_id", "app_name", "session_id", "session_uid", "run_uid", "invocation_id", "event_id"),
    *("effect_uid", "tool", "step"),
)


class Who(NamedTuple):
    """The identity of a call."""

    tenant_id: str
    user_id: str


class Nobody(NamedTuple):
    """The identity of a call about all tenants."""


def identify(tenant_id: str, user_id: str) -> Who:
    return Who(identifier("tenant_id", tenant_id), identifier("user_id", user_id))


@dataclass(frozen=True)
class Call(Generic[T]):
    """One statement of queries.sql. `repeatable`: a second time it changes nothing and the answer says so."""

    name: str
    parameters: Mapping[str, Any]
    read: Callable[[Sequence[Row]], T]
    repeatable: bool
    writes: bool

    @property
    def names(self) -> dict[str, str]:
        """The identifiers it was given, for errors."""
        return {name: str(self.parameters[name]) for name in _NAMES if self.parameters.get(name) is not None}


@contextmanager
def refusals_of(name: str, who: Who | Nobody) -> Iterator[None]:
    """What is refused before anything is sent says which call it was meant for, as the database's refusals do."""
    try:
        yield
    except BadInput as error:
        error.call, error.names = name, who._asdict()
        raise


def writing(name: str, who: Who | Nobody, parameters: Mapping[str, Any], kind: type[T], *, repeatable: bool) -> Call[T]:
    """A call that writes and gives one row."""
    read = _reader(kind)
    return Call(name, {**who._asdict(), **parameters}, lambda found: read(found[0]), repeatable, writes=True)


def looking(name: str, who: Who, parameters: Mapping[str, Any], kind: type[T]) -> Call[T]:
    """A call that writes nothing and gives one row."""
    return replace(writing(name, who, parameters, kind, repeatable=True), writes=False)


def finding(name: str, who: Who, parameters: Mapping[str, Any], kind: type[T]) -> Call[T | None]:
    """A call that writes nothing and gives one row or none."""
    read = _reader(kind)
    parameters = {**who._asdict(), **parameters}
    return Call(name, parameters, lambda found: read(found[0]) if found else None, True, writes=False)


def listing(name: str, who: Who | Nobody, parameters: Mapping[str, Any], kind: type[T]) -> Call[list[T]]:
    """A call that writes nothing and gives any number of rows."""
    return replace(writing_several(name, who, parameters, kind), repeatable=True, writes=False)


def writing_several(name: str, who: Who | Nobody, parameters: Mapping[str, Any], kind: type[T]) -> Call[list[T]]:
    """A call that writes and gives any number of rows; a second time it changes nothing."""
    read = _reader(kind)
    return Call(name, {**who._asdict(), **parameters}, lambda found: [read(row) for row in found], True, writes=True)


_READERS: dict[type[Any], Callable[[Row], Any]] = {}


def _reader(kind: type[T]) -> Callable[[Row], T]:
    if kind not in _READERS:
        _READERS[kind] = reader(kind)
    return _READERS[kind]
