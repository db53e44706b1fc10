"""Which arguments are the same: judged by the database from the value, so every language gets the same answer."""

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.calls import begin, open_session, start
from tests.support.harness import Connection
from tests.support.rented import Rented

SAME = [
    ('{"a": 1, "b": [2]}', '{ "b" :[ 2 ] ,"a":1}'),
    ('{"a": {"x": 1, "y": 2}}', '{"a": {"y": 2, "x": 1}}'),
    ('{"a": 1, "a": 2}', '{"a": 2}'),
    ('{"a": 1, "\\u0061": 2}', '{"a": 2}'),
    ("1", "1.0"),
    ("1", "1e0"),
    ("100", "1E+2"),
    ("0.1", "0.10"),
    ("0.1", "1e-1"),
    ("0", "-0"),
    ("0", "0.000"),
    ("[1, [2.50]]", "[1.00, [2.5]]"),
    ('"caf\u00e9"', '"cafe\u0301"'),
    ('"caf\u00e9"', '"caf\\u00e9"'),
    ('{"caf\u00e9": 1}', '{"cafe\u0301": 1}'),
    ('[{"\u212b": ["\u212b"]}]', '[{"A\u030a": ["\u00c5"]}]'),
    ('"\U0001f600"', '"\\ud83d\\ude00"'),
    ('"\ufffe"', '"\\uFFFE"'),
    ("null", None),
]
OTHER = [
    ("[1, 2]", "[2, 1]"),
    ('{"a": 1}', '{"a": "1"}'),
    ('{"a": 1}', '{"a": 1, "b": null}'),
    ('{"a": null}', "{}"),
    ("{}", "[]"),
    ("1", "true"),
    ('""', "null"),
    ("1", "1.0000000000000000000000000000001"),
    ("9007199254740993", "9007199254740992"),
    ('"1.0"', '"1"'),
    ('"a"', '"A"'),
    ('"\u00e9"', '"e"'),
    ('"\ufb01"', '"fi"'),
    ('"a\\u0000"', '"a"'),
    ('"\\u0000"', '"\\ufffe0000"'),
    ('"\\ud800"', '"\\ud801"'),
    ("[1, [2]]", "[[1], 2]"),
]


def same(app: Connection, run: UUID, first: str | None, second: str | None, intent: str = "i") -> bool:
    """Begin one intent with both arguments, and read whether the database holds them for the same."""
    begun = begin(app, run, intent=intent, args=first)
    assert (begun["outcome"], begun["args_match"]) == ("execute", True)
    again = begin(app, run, intent=intent, args=second, args_may_differ=True)
    assert again["effect_uid"] == begun["effect_uid"]
    matches = again["args_match"]
    assert isinstance(matches, bool)
    return matches


@pytest.mark.parametrize(("first", "second"), SAME)
def test_these_are_the_same(db: Rented, run: UUID, first: str | None, second: str | None) -> None:
    with db.as_app() as app:
        assert same(app, run, first, second)
        assert same(app, run, second, first, "the other way round")


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_these_are_not(db: Rented, run: UUID, first: str, second: str) -> None:
    with db.as_app() as app:
        assert not same(app, run, first, second)


def test_the_key_of_a_run_scoped_effect_goes_by_the_same_rule(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        assert begin(app, run, args='{"cents": 5.0, "to": "Ren\u00e9"}')["outcome"] == "execute"
        assert begin(app, run, args='{"to": "Rene\u0301", "cents": 5}')["outcome"] == "in_flight"
        assert begin(app, run, args='{"to": "Rene", "cents": 5}')["outcome"] == "execute"


def test_arguments_come_back_as_they_were_sent_first(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        begin(app, run, args='{"to": "Rene\u0301", "cents": 5.10}')
        again = begin(app, run, args='{"to": "Ren\u00e9", "cents": 5.1}')
    assert again["args"] == {"to": "Rene\u0301", "cents": 5.1}


def test_half_a_surrogate_pair_is_the_same_however_its_digits_are_written(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        assert same(app, run, '"\\udfaa"', '"\\uDFAA"')


def test_a_value_under_a_key_spelled_twice_is_not_dropped(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        assert not same(app, run, '{"caf\u00e9": 1, "cafe\u0301": 2}', '{"caf\u00e9": 1}')


NUMBERS = [["0", "-0", "0.0"], ["1", "1.0", "1e0", "10e-1"], ["-1", "-1.00"], ["0.1", "0.10", "1e-1"], ["10", "1E1"]]
LETTERS = ["a", "e", "\u00e9", "\u0301", "\u0307", "\u00c5", "\u212b", "\uac00", "\u1100", "\u1161"]
ODD = ["\0", "\ud800", "\udfff", "\ufffe", "\U0001f600", '"', "\\", "/", "1", "."]


@dataclass(frozen=True)
class Number:
    """A number, in all its spellings."""

    spellings: tuple[str, ...]


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


TEXTS = st.lists(st.sampled_from([*LETTERS, *ODD]), max_size=3).map("".join)
LEAVES = st.sampled_from([None, True, False, *(Number(tuple(spellings)) for spellings in NUMBERS)]) | TEXTS
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.tuples(TEXTS, inner), max_size=3, unique_by=lambda member: nfc(member[0])).map(dict)
    ),
    max_leaves=6,
)


@st.composite
def spelled(draw: st.DrawFn, tree: Any) -> str:
    """Write a value as JSON in one of the ways there are: order of keys, form of numbers, accents and escapes."""
    if isinstance(tree, dict):
        members = draw(st.permutations(list(tree.items())))
        return "{" + ",".join(f"{draw(spelled(key))}: {draw(spelled(value))}" for key, value in members) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(draw(spelled(item)) for item in tree) + "]"
    if isinstance(tree, Number):
        return draw(st.sampled_from(tree.spellings))
    if isinstance(tree, str):
        text = draw(st.sampled_from([tree, nfc(tree), unicodedata.normalize("NFD", tree)]))
        # Half a pair does not leave Python but as an escape.
        escaped = any("\ud800" <= letter <= "\udfff" for letter in text) or draw(st.booleans())
        return json.dumps(text, ensure_ascii=escaped)
    return json.dumps(tree)


def canonical(value: Any) -> Any:
    """Say by Python what the database says by SQL: the value with numbers by size and texts in form NFC."""
    if isinstance(value, dict):
        return ("object", frozenset((nfc(key), canonical(member)) for key, member in value.items()))
    if isinstance(value, list):
        return ("array", *map(canonical, value))
    if isinstance(value, str):
        return ("text", nfc(value))
    return (type(value).__name__, value)


def parsed(text: str) -> Any:
    return canonical(json.loads(text, parse_int=Decimal, parse_float=Decimal))


@pytest.fixture(scope="module")
def begun(module_db: Any) -> Iterator[tuple[Connection, UUID]]:
    """A transaction with a run in which any number of intents is begun."""
    with Rented.of(module_db).as_app() as app:
        yield app, start(app, open_session(app))


RULES = settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
UNTAKEN = iter(range(10**9))


@RULES
@given(data=st.data(), first=TREES)
def test_arguments_are_the_same_exactly_if_their_values_are(
    begun: tuple[Connection, UUID], data: st.DataObject, first: Any
) -> None:
    second = data.draw(st.just(first) | TREES)
    texts = data.draw(spelled(first)), data.draw(spelled(second))
    assert same(*begun, *texts, f"intent {next(UNTAKEN)}") is (parsed(texts[0]) == parsed(texts[1]))
