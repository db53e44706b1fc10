"""Values that tempt a JSON encoder: those that come back equal, and those that would not."""

import dataclasses
import datetime as dt
import enum
import math
import uuid
from collections import Counter, OrderedDict, UserDict, defaultdict, deque, namedtuple
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from unittest.mock import ANY, MagicMock


class Level(enum.IntEnum):
    HIGH = 3


class Word(str, enum.Enum):
    HELLO = "hello"


class Colour(enum.Enum):
    RED = "red"


class Model:
    """What pydantic does, which need not be installed."""

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {"amount": 7}


@dataclasses.dataclass
class Order:
    amount: int = 7


Pair = namedtuple("Pair", "left right")


class OddStr(str):
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return False


class OddDict(dict[str, Any]):
    def items(self) -> Any:
        return [("other", 1)]


class Broken(dict[str, Any]):
    def items(self) -> Any:
        raise LookupError("secret")


class ArrayLike:
    """What numpy does: == gives an array, whose truth is an error."""

    def tolist(self) -> list[int]:
        return [1, 2]

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise ValueError("the truth value of an array is ambiguous")

    __hash__ = None  # type: ignore[assignment]


class ArrayList(list[Any]):
    def __eq__(self, other: object) -> Any:
        return ArrayLike()

    __hash__ = None


class Yes:
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


EQUAL: list[Any] = [
    *(None, True, False, 0, -1, 2**63, 10**600, 0.1, 1e16, 1e23, -1e23, 5e-324, 1.7976931348623157e308, -0.0, 1e-5),
    *("", "é", "\0", "\ud800", "\udc00", "\udc00\ud800", "\ufffe", "\U0001f600", "\x7f\x85\u2028", '"\\', "1e+23"),
    *([], {}, [[]], {"": {}}, {"a\0": "\ud800"}, [True, 1, 1.0], ["a,1e-05,b", 1e-05, '\\",1e-05,', 1e-05]),
    *(Level.HIGH, Word.HELLO, {Word.HELLO: [Level.HIGH]}),
    *(OrderedDict(b=1, a=2), defaultdict(list, a=[1]), Counter("hello")),
]

# The value, and words of the reason and of the hint.
REFUSED: list[tuple[Any, str, str]] = [
    ((1, 2), "tuple", "list(value)"),
    (Pair(1, 2), "Pair", "list(value)"),
    ({1}, "set", "sorted(value)"),
    (frozenset(), "frozenset", "sorted(value)"),
    (b"x", "bytes", "base64"),
    (bytearray(b"x"), "bytearray", "base64"),
    (dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc), "datetime", "isoformat()"),
    (dt.date(2026, 1, 1), "date", "isoformat()"),
    (dt.time(1), "time", "isoformat()"),
    (dt.timedelta(1), "timedelta", "total_seconds()"),
    (Decimal("1.50"), "Decimal", "str(value), or an integer of minor units"),
    (uuid.UUID(int=7), "UUID", "str(value)"),
    (PurePosixPath("/x"), "PurePosixPath", "str(value)"),
    (Order(), "Order", "dataclasses.asdict(value)"),
    (Model(), "Model", 'value.model_dump(mode="json")'),
    (Colour.RED, "Colour", "value.value"),
    (ValueError("secret"), "ValueError", "str(value)"),
    (ArrayLike(), "ArrayLike", "value.tolist()"),
    (MappingProxyType({"a": 1}), "mappingproxy", "dict(value)"),
    (UserDict(a=1), "UserDict", "dict(value)"),
    (deque([1]), "deque", "list(value)"),
    ({"a": 1}.values(), "dict_values", "list(value)"),
    (iter([1]), "list_iterator", "list(value)"),
    (Fraction(1, 3), "Fraction", "dict, list, str"),
    (object(), "object", "dict, list, str"),
    (Order, "type", "dict, list, str"),
    (Yes(), "Yes", "dict, list, str"),
    (ANY, "_ANY", "dict, list, str"),
    (MagicMock(spec=dict), "MagicMock", ""),
    (math.nan, "NaN", '"NaN"'),
    (math.inf, "Infinity", "None"),
    (-math.inf, "Infinity", "None"),
    ("\ud83d\ude00", "surrogate", "utf-16"),
    (OddStr("secret"), "OddStr", "plain"),
    ({1: "secret"}, "keys is of type int", "str(key)"),
    ({True: 1}, "keys is of type bool", "str(key)"),
    ({None: 1}, "keys is of type NoneType", "str(key)"),
    ({1.5: 1}, "keys is of type float", "str(key)"),
    ({(1, 2): 1}, "keys is of type tuple", "str(key)"),
    ({Level.HIGH: 1}, "keys is of type Level", "str(key)"),
    ({1: "a", "1": "b"}, "keys is of type int", "str(key)"),
    ({"\ud83d\ude00": 1}, "one of its keys: a high surrogate", "utf-16"),
]
# What a list or dict of one's own class shows json is not what it compares with.
REFUSED_AS_A_WHOLE: list[tuple[Any, str, str]] = [
    (OddDict(a=1), "OddDict", "plain"),
    (Broken(a=1), "Broken", "plain"),
    (ArrayList([1]), "ArrayList", "plain"),
]


def label(value: object) -> str:
    """Name a value in a test's id, the same in every process: no address of an object."""
    shown = ascii(value)
    return type(value).__name__ if " at 0x" in shown or " id=" in shown else shown
