"""JSON on its way to Postgres and back: what encode() accepts comes back equal, the rest is refused by its path.

Equal means ==: an IntEnum comes back as an int, a float -0.0 as 0.0. The good path runs in C; only a value that
is about to be refused is walked in Python, to say where the fault is. No message repeats a value.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
import math
import pathlib
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

# The limit of durable.check_expansion. Beyond 1 GB Postgres would not answer with an error but hang up.
LIMIT = 134217728
# Of a long path the first steps are shown, of a long key or type name the first characters.
_HEAD, _KEY = 8, 40

_Fault = tuple[str, str]


class NotStorable(Exception):
    """A value that would not come back equal: where the fault is, why, and what to write instead."""

    def __init__(self, path: str, reason: str, hint: str) -> None:
        super().__init__(f"{path} can't be stored exactly: {reason}")
        self.path = path
        self.reason = reason
        self.hint = hint


class NotReadable(Exception):
    """Stored JSON that this interpreter can't build."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} can't be read: {reason}")
        self.field = field
        self.reason = reason


def encode(value: Any, field: str) -> str:
    """Return the JSON text of `value` for a parameter of type json.

    Raises NotStorable, its path beginning with `field`, unless the text parses to an equal value.
    """
    text, equal, too_deep = "", False, False
    try:
        text = _dump(value)
        equal = bool(_load(text) == value)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a value's own methods may raise anything
        too_deep = isinstance(error, RecursionError)
    if not equal:
        # Not from a handler: what those caught may hold the value, and is not to be this error's context.
        raise _first_fault(value, field, too_deep)
    if len(text) > LIMIT // 4 and len(text.encode()) > LIMIT:
        raise NotStorable(field, f"it takes over {LIMIT >> 20} MB", "Store the large part elsewhere and refer to it.")
    return text


def decode(text: str, field: str) -> Any:
    """Return the value of a json column. Numbers beyond a float's range come as int or Decimal, never as inf.

    Raises NotReadable when it is nested deeper than this interpreter's stack allows.
    """
    # Only an int of very many digits and a float that would be inf need a look at each number.
    shape = text.encode("utf-8", "surrogatepass").translate(_SHAPE, b"+")
    parse = _load_any_number if _LONG in shape or _LARGE_EXPONENT in shape else _load
    try:
        return parse(text)
    except RecursionError:
        reason = "it is nested deeper than this interpreter's stack allows"
    except ValueError:
        reason = "it is not JSON"
    raise NotReadable(field, reason)


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        # More digits than sys.get_int_max_str_digits(), a limit that decimal doesn't have.
        return int(decimal.Decimal(digits))


def _float(digits: str) -> float | decimal.Decimal:
    number = float(digits)
    return decimal.Decimal(digits) if math.isinf(number) else number


_dump_raw = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_dump_ascii = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
_load = json.JSONDecoder().decode
_load_any_number = json.JSONDecoder(parse_int=_integer, parse_float=_float).decode

# Every digit as 0, every E as e: what a text holds can then be found in C.
_SHAPE = bytes.maketrans(b"123456789E", b"000000000e")
# What exceeds 1.8e308 has an exponent of three digits, or one of two after 210 digits, or none after 309.
_LONG, _LARGE_EXPONENT = b"0" * 210, b"0e000"
# A float as Python writes it with an exponent, between the marks of compact JSON; in a string it may stand too.
_EXPONENT = re.compile(r"[\[,:](-?[0-9](?:\.[0-9]+)?e[-+][0-9]{2,3})(?=[\],}])")


def _dump(value: Any) -> str:
    text = _dump_raw(value)
    try:
        shape = text.encode().translate(_SHAPE)
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8, but an escape.
        text = _dump_ascii(value)
        shape = text.encode().translate(_SHAPE)
    return _write_all_out(text) if b"0e-00" in shape or b"0e+00" in shape else text


def _write_out(number: str) -> str:
    """1e+23 -> 100000000000000000000000.0: Postgres writes 1e+23 without the point, and Python would read an int."""
    digits = format(decimal.Decimal(number), "f")
    return digits if "." in digits else digits + ".0"


def _write_all_out(text: str) -> str:
    if text[0] in "-0123456789":
        return _write_out(text)
    pieces: list[str] = []
    done = quotes = 0
    for found in _EXPONENT.finditer(text):
        between = text[done : found.start(1)]
        # An odd number of quotes before it: it stands in a string.
        bare = between.replace("\\\\", "") if "\\" in between else between
        quotes += bare.count('"') - bare.count('\\"')
        pieces += between, found[1] if quotes % 2 else _write_out(found[1])
        done = found.end(1)
    return "".join((*pieces, text[done:]))


@dataclasses.dataclass(frozen=True, eq=False)
class _Place:
    """A value, where it stands in the one above it, and how deep. The root's step is the field."""

    value: Any
    above: _Place | None
    step: str | int
    depth: int

    def all_above(self) -> Iterator[_Place]:
        place = self.above
        while place is not None:
            yield place
            place = place.above

    def path(self, tail: int = 4) -> str:
        """Write the way here, without the middle of a long one."""
        steps = [self.step, *(place.step for place in self.all_above())][::-1]
        written = [_written(step) for step in steps[1:]]
        if len(written) > _HEAD + tail:
            written[_HEAD : len(written) - tail] = ["..."]
        return "".join([str(steps[0]), *written])


def _first_fault(value: Any, field: str, too_deep: bool) -> NotStorable:
    """Find what keeps `value` from coming back equal, in the order of the JSON; no recursion: depth may be it."""
    root = deepest = _Place(value, None, field, 0)
    # Kept with its value: a subclass may make up its members, and an id is used again when they are gone.
    waiting, seen = [root], dict[int, _Place]()
    while waiting:
        place = waiting.pop()
        # Types and not isinstance(): a proxy or a mock may claim another class, and json doesn't believe it.
        if not issubclass(type(place.value), (list, dict)):
            fault = _leaf_fault(place.value)
        elif id(place.value) not in seen:
            seen[id(place.value)] = place
            deepest = place if place.depth > deepest.depth else deepest
            members = _members(place)
            fault = _key_fault(members) if issubclass(type(place.value), dict) else None
            waiting += reversed(members)
        else:
            fault = _CYCLE if any(place.value is other.value for other in place.all_above()) else None
        if fault is not None:
            return NotStorable(place.path(), *fault)
    if too_deep:
        return NotStorable(
            deepest.path(tail=0),
            f"it is nested {deepest.depth + 1} levels deep, more than this interpreter's stack allows",
            "Make it flatter, or store the deep part as a string.",
        )
    # Every part is sound, so a subclass of list or dict shows json others than it compares with: the innermost one.
    odd = [place for place in seen.values() if type(place.value) not in (list, dict) and not _survives(place.value)]
    blamed = odd[-1] if odd else root
    return NotStorable(blamed.path(), *_unequal(blamed.value))


def _members(place: _Place) -> list[_Place]:
    try:
        steps = place.value.items() if issubclass(type(place.value), dict) else enumerate(place.value)
        return [_Place(member, place, step, place.depth + 1) for step, member in steps]
    except Exception:  # noqa: BLE001 - a subclass may raise anything; then it is found as one that does not survive
        return []


def _survives(value: Any) -> bool:
    try:
        return bool(_load(_dump_ascii(value)) == value)
    except Exception:  # noqa: BLE001 - a value's own methods may raise anything
        return False


def _key_fault(members: list[_Place]) -> _Fault | None:
    for key in (member.step for member in members):
        if not issubclass(type(key), str):
            return f"one of its keys is of type {_type(key)}, JSON has only strings", "Write str(key)."
        fault = _leaf_fault(key)
        if fault is not None:
            return f"one of its keys: {fault[0]}", fault[1]
    return None


# 640 digits, the least that sys.set_int_max_str_digits() can be set to.
_WRITABLE_BITS = 2126
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_JOINED = (
    "a high surrogate is directly followed by a low one, which JSON joins into one character",
    'Join them first: value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass").',
)
_CYCLE = "it contains itself", "Refer to it by a name or a key instead."


def _leaf_fault(value: Any) -> _Fault | None:
    kind = type(value)
    # The two that long values consist of are not worth a dump each.
    if (kind is float and math.isfinite(value)) or (kind is str and value.isascii()) or _survives(value):
        return None
    if issubclass(kind, str) and _PAIR.search(value):
        return _JOINED
    if issubclass(kind, float) and not math.isfinite(value):
        return "NaN and Infinity are not JSON", 'Write None, or a string such as "NaN".'
    if issubclass(kind, int) and int.bit_length(value) > _WRITABLE_BITS:
        return "it is an int of more digits than sys.get_int_max_str_digits()", "Write hex(value)."
    if issubclass(kind, (str, int, float)):
        return _unequal(value)
    return f"{_type(value)} is not JSON", _hint(kind)


def _unequal(value: Any) -> _Fault:
    return f"this {_type(value)} does not come back equal", "Write it as a plain dict, list, str, int or float."


# The first line that fits, by the type's own words or its bases: attributes of a value may do anything.
_BY_METHOD = (
    ("model_dump", 'Write value.model_dump(mode="json").'),
    ("__dataclass_fields__", "Write dataclasses.asdict(value)."),
    ("tolist", "Write value.tolist()."),
)
_BY_BASE: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (decimal.Decimal, "Write str(value), or an integer of minor units."),
    ((dt.date, dt.time), "Write value.isoformat()."),
    (dt.timedelta, "Write value.total_seconds()."),
    ((uuid.UUID, pathlib.PurePath), "Write str(value)."),
    ((bytes, bytearray, memoryview), 'Write base64.b64encode(value).decode("ascii").'),
    (enum.Enum, "Write value.value."),
    (BaseException, 'Write {"type": type(value).__name__, "message": str(value)}.'),
    (Set, "Write sorted(value)."),
    (Mapping, "Write dict(value)."),
    (Iterable, "Write list(value)."),
)


def _hint(kind: type) -> str:
    by_method = (hint for name, hint in _BY_METHOD if hasattr(kind, name))
    by_base = (hint for bases, hint in _BY_BASE if issubclass(kind, bases))
    return next(by_method, None) or next(by_base, "Write it with dict, list, str, int, float, bool and None.")


def _written(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    # A subclass may print itself otherwise.
    key = str.__str__(step)
    if len(key) <= _KEY and key.isidentifier():
        return f".{key}"
    short = key if len(key) <= _KEY else key[: _KEY - 3] + "..."
    return f"[{_printable(json.dumps(short, ensure_ascii=False))}]"


def _type(value: Any) -> str:
    return _printable(type(value).__qualname__[:_KEY])


def _printable(text: str) -> str:
    r"""Write what can't be printed as \uXXXX, so that a message can be encoded, and moves no cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
