r"""encode() gives text that parses to an equal value, or names the path at fault; decode() reads all that is stored."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from durable_pg._wire.json_text import LIMIT, NotReadable, NotStorable, decode, encode
from tests.client.odd_json import EQUAL, REFUSED, REFUSED_AS_A_WHOLE, Word, label


def refusal(value: Any, field: str = "content") -> NotStorable:
    with pytest.raises(NotStorable) as caught:
        encode(value, field)
    return caught.value


@pytest.mark.parametrize("value", EQUAL, ids=label)
def test_json_values_give_text_that_parses_to_an_equal_value(value: Any) -> None:
    text = encode(value, "content")
    assert json.loads(text) == value
    assert decode(text, "content") == value
    text.encode()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e23, "100000000000000000000000.0"),
        ([1e16, -1.5e-7], "[10000000000000000.0,-0.00000015]"),
        ({"1e-05": 1e-05, "x": ":1e-05}"}, '{"1e-05":0.00001,"x":":1e-05}"}'),
        (["\\", 1e-05, '\\"', 1e-05], r'["\\",0.00001,"\\\"",0.00001]'),
        ([1.5, 100, "1e+23"], '[1.5,100,"1e+23"]'),
    ],
)
def test_floats_are_written_out_in_full_and_strings_are_left_alone(value: Any, text: str) -> None:
    assert encode(value, "content") == text


def test_text_is_sent_as_characters_unless_a_lone_surrogate_needs_escapes() -> None:
    assert encode("é\0", "content") == '"é\\u0000"'
    assert encode("é\ud800", "content") == '"\\u00e9\\ud800"'


@pytest.mark.parametrize(("value", "reason", "hint"), [*REFUSED, *REFUSED_AS_A_WHOLE], ids=label)
def test_what_would_not_come_back_equal_is_refused_by_its_path(value: Any, reason: str, hint: str) -> None:
    for whole, path in ((value, "content"), ({"parts": [1, {"text": value}]}, "content.parts[1].text")):
        error = refusal(whole)
        assert error.path == path
        assert reason in error.reason
        assert hint in error.hint
        assert "secret" not in f"{error} {error.hint}"
        assert error.__context__ is None, "what the value raised may quote it"


@pytest.mark.parametrize("value", [value for value, *_ in REFUSED], ids=label)
def test_the_first_of_several_faults_is_named(value: Any) -> None:
    assert refusal({"a": [{"b": "sound"}, value, (1, 2)], "c": {1, 2}}).path == "content.a[1]"


def test_pydantic_models_are_refused_with_the_call_that_makes_them_json() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Refund", amount=(int, 7))()
    error = refusal({"args": model})
    assert (error.path, error.reason, error.hint) == (
        "content.args",
        "Refund is not JSON",
        'Write value.model_dump(mode="json").',
    )
    assert encode(model.model_dump(mode="json"), "content") == '{"amount":7}'


@pytest.mark.parametrize("kind", ["float64", "int64", "float32", "array"])
def test_numpy_values_are_equal_or_refused(kind: str) -> None:
    numpy = pytest.importorskip("numpy")
    value = numpy.array([1, 2]) if kind == "array" else getattr(numpy, kind)(7)
    if kind == "float64":
        assert encode([value], "content") == "[7.0]"
    else:
        assert (refusal({"a": value}).path, refusal(value).hint) == ("content.a", "Write value.tolist().")


@pytest.mark.parametrize(
    ("key", "step"),
    [
        ("größe_1", ".größe_1"),
        ("odd key", '["odd key"]'),
        ("user:x", '["user:x"]'),
        ("", '[""]'),
        ("7", '["7"]'),
        ('a"\\b', r'["a\"\\b"]'),
        ("\0\x1b[2J\x85\u202e", r'["\u0000\u001b[2J\x85\u202e"]'),
        ("\ud800", r'["\ud800"]'),
        ("k" * 41, f'["{"k" * 37}..."]'),
        (Word.HELLO, ".hello"),
    ],
)
def test_a_path_can_be_printed_whatever_its_keys_are(key: str, step: str) -> None:
    error = refusal({key: (1,)})
    assert error.path == f"content{step}"
    assert str(error).isprintable()
    str(error).encode()


def test_a_long_path_is_cut_in_the_middle() -> None:
    value: Any = {"here": (1,)}
    for _ in range(300):
        value = [value]
    assert refusal(value).path == f"content{'[0]' * 8}...{'[0]' * 3}.here"


def test_a_value_that_contains_itself_is_refused_where_it_does() -> None:
    value: dict[str, Any] = {"a": [1, {}], "shared": []}
    value["a"][1]["back"] = value["a"]
    assert (refusal(value).path, refusal(value).reason) == ("content.a[1].back", "it contains itself")


def test_a_value_that_is_shared_is_written_twice() -> None:
    shared = {"a": 1}
    assert encode([shared, shared], "content") == '[{"a":1},{"a":1}]'
    assert refusal([shared, [shared], ()]).path == "content[2]"


@pytest.mark.parametrize("levels", [100_000])
@pytest.mark.parametrize("key", [None, "k"])
def test_nesting_beyond_the_stack_is_refused_with_its_depth(levels: int, key: str | None) -> None:
    value: Any = 1
    for _ in range(levels):
        value = [value] if key is None else {key: value}
    error = refusal(value)
    assert error.path == f"content{('[0]' if key is None else '.k') * 8}..."
    assert f"{levels} levels" in error.reason
    with pytest.raises(NotReadable, match="content can't be read: it is nested deeper"):
        decode(("[" if key is None else '{"k":') * levels + "1" + ("]" if key is None else "}") * levels, "content")


def test_nesting_of_500_levels_is_fine() -> None:
    text = "[" * 500 + "]" * 500
    assert encode(decode(text, "content"), "content") == text


@contextmanager
def int_digits(limit: int) -> Iterator[None]:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(limit)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(before)


def test_an_int_of_too_many_digits_for_this_interpreter_is_refused_by_its_path() -> None:
    with int_digits(640):
        error = refusal({"n": [10**639, -(10**640)]})
        assert (error.path, error.hint) == ("content.n[1]", "Write hex(value).")
        assert "int of more digits" in error.reason


def test_an_int_of_too_many_digits_is_read_all_the_same() -> None:
    with int_digits(640):
        assert decode(f'{{"n":[-{"9" * 5000},1.5,7]}}', "content") == {"n": [1 - 10**5000, 1.5, 7]}


@pytest.mark.parametrize(
    "text", [f"1{'0' * 400}.5", f"-9{'0' * 308}.0", "1.5e400", "-1E+0400", f"{'1' * 220}.5e99", f"1{'0' * 130_000}.1"]
)
def test_a_float_beyond_the_range_is_read_as_a_decimal_and_never_as_inf(text: str) -> None:
    (read, small) = decode(f"[{text},1.5]", "content")
    assert (type(read), read, small) == (Decimal, Decimal(text), 1.5)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "secret"])
def test_what_is_not_json_is_not_readable(text: str) -> None:
    with pytest.raises(NotReadable, match=r"^result can't be read: it is not JSON$") as caught:
        decode(text, "result")
    assert caught.value.__context__ is None


@pytest.mark.parametrize("character", ["x", "é"])
def test_more_than_the_database_takes_is_refused_before_it_is_sent(
    monkeypatch: pytest.MonkeyPatch, character: str
) -> None:
    monkeypatch.setattr("durable_pg._wire.json_text.LIMIT", 1 << 20)
    fits = (1 << 20) // len(character.encode()) - 2
    assert encode(character * fits, "content")
    assert refusal(character * (fits + 2)).reason == "it takes over 1 MB"


def test_the_limit_is_the_one_of_the_database() -> None:
    (root,) = (parent for parent in Path(__file__).parents if (parent / "sql" / "manifest.txt").exists())
    sql = (root / "sql" / "ground" / "json.sql").read_text("utf-8")
    assert f"> {LIMIT} " in sql
