r"""JSON is stored exactly or refused by its path: what jsonb can't hold (\u0000, half a pair) comes back as sent."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import Error
from psycopg.errors import UndefinedFunction
from psycopg.types.json import Json, Jsonb

from tests.support.calls import append, events, open_session
from tests.support.harness import Connection, refused, value
from tests.support.rented import Rented, nothing_written

IN_ONE_DATABASE = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
# What the escape has to tell apart: the code units it escapes, their escapes as text, and backslashes before them.
PIECES = st.sampled_from(
    [
        *("\0", "\ud800", "\udbff", "\udc00", "\udfff", "\ufffe", "\uffff", "\x01", "\x1f", "\x7f", "\U0001f600"),
        *("\\", "\\\\", "\\u0000", "\\\\u0000", "\\ud83d", "\\ude00", "\\ufffe", "u0000", "fffe", "0000", "d800"),
        *('"', "/", "a", "é", "\n", ""),
    ]
)
TEXTS = st.lists(PIECES, max_size=8).map("".join) | st.text(st.characters(codec=None, categories=None), max_size=6)
NUMBERS = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([-0.0, 5e-324, 1.7976931348623157e308, 10**300, -(10**300), 2**63, 0.1])
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)


def parsed(text: str) -> Any:
    """Parse JSON with exact numbers, which compare by value: 1.0, 1 and 1e0 are equal."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def stored_and_read(app: Connection, session: UUID, text: str) -> str:
    seq = append(app, session, content=text)["seq"]
    return str(
        value(
            app, "select content::text from durable.read_events(session_uid => %s, after_seq => %s)", session, seq - 1
        )
    )


def nested(value_: Any, levels: int) -> Any:
    for level in range(levels):
        value_ = [value_] if level % 2 else {"\0": value_}
    return value_


def recorded(db: Rented) -> int:
    with db.superuser() as root:
        return int(value(root, "select count(*) from durable.events"))


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_any_json_that_python_makes_reads_back_equal_or_is_refused_by_its_path(
    db: Rented, session: UUID, ensure_ascii: bool
) -> None:
    with db.as_app() as app:

        @IN_ONE_DATABASE
        @given(VALUES, st.integers(0, 40))
        @example("\ude00\ud83d", 0)
        @example("\ud83d\\\ude00", 0)
        @example(dict.fromkeys(["\ud83d", "\ude00", "\0", "\ufffe0000", "\u0000", "\\u0000"]), 3)
        @example("\\" * 7 + "\0" + "\\" * 8 + "\ud800", 1)
        def round_trip(given_value: Any, levels: int) -> None:
            text = json.dumps(nested(given_value, levels), ensure_ascii=ensure_ascii)
            # Half a surrogate pair has no UTF-8: whoever sends raw characters has to escape it.
            text = "".join(c if not "\ud800" <= c <= "\udfff" else f"\\u{ord(c):04x}" for c in text)
            before = recorded(db)
            try:
                with app.transaction():
                    read = stored_and_read(app, session, text)
            except Error as error:
                if error.sqlstate not in ("22W02", "22W03") or not str(error.diag.message_detail).startswith(
                    "path content"
                ):
                    raise
                assert recorded(db) == before
            else:
                assert parsed(read) == parsed(text)

        round_trip()


def test_any_two_values_are_stored_alike_only_when_they_are_equal(db: Rented) -> None:
    with db.as_app() as app:

        @IN_ONE_DATABASE
        @given(TEXTS, TEXTS)
        @example("\0", "\ufffe0000")
        @example("\ufffe", "\ufffefffe")
        @example("\ud800", "\ufffed800")
        def compare(one: str, other: str) -> None:
            query = "select durable.escape_json(%s, 'f') = durable.escape_json(%s, 'f')"
            assert value(app, query, json.dumps(one), json.dumps(other)) == (one == other)

        compare()


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("1e-20000", "content"),
        ("1e200000", "content"),
        ('{"a": {"b": [1, -1e200000]}}', "content.a.b[1]"),
        ('[[{"k": 1e-16384}]]', "content[0][0].k"),
        ('["\\u0000", 1e200000]', "content[1]"),
    ],
)
def test_a_number_that_numeric_can_not_hold_is_refused_by_its_path(
    db: Rented, session: UUID, text: str, path: str
) -> None:
    with nothing_written(db), refused("22W02") as refusal, db.as_app() as app:
        append(app, session, content=text)
    assert str(refusal.diag.message_primary).startswith(f"{path} can't be stored exactly")


@pytest.mark.parametrize(
    "text",
    ["1e-4000", "1e4000", "1.7976931348623157e+308", "123456789" * 1000, "0." + "123456789" * 1000, "1.10", "1E+2"],
)
def test_a_number_that_numeric_holds_keeps_every_digit(db: Rented, session: UUID, text: str) -> None:
    with db.as_app() as app:
        assert Decimal(stored_and_read(app, session, text)) == Decimal(text)


@pytest.mark.parametrize("argument", ["content", "metadata", "state_delta"])
@pytest.mark.parametrize(
    "text", ["1e131071", "1e-16383", "[" + ",".join(["1e131071"] * 4300) + "]", '["\\u0000", 1e9999]']
)
def test_numbers_that_would_fill_every_answer_are_refused(db: Rented, session: UUID, argument: str, text: str) -> None:
    """In jsonb, 1e131071 is written out in 131,072 digits; a few kilobytes of these would break every list."""
    value = text if argument == "content" else f'{{"app:k": {text}}}'
    with nothing_written(db), refused("22W02", match="nested too deep or too large"), db.as_app() as app:
        append(app, session, **{argument: value})


def test_a_nul_beside_what_is_nested_too_deep_is_refused_as_too_deep(db: Rented, session: UUID) -> None:
    """Whether our function or Postgres's own parser meets the depth first depends on the server's stack."""
    text = '["\\u0000", ' + "[" * 20_000 + "]" * 20_000 + "]"
    with nothing_written(db), pytest.raises(Error) as refusal, db.as_app() as app:
        append(app, session, content=text)
    assert refusal.value.sqlstate in {"22W02", "54001"}
    if refusal.value.sqlstate == "54001":
        assert "escape" not in str(refusal.value.diag.context)


def test_minus_zero_is_zero(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        assert stored_and_read(app, session, "-0.0") == "0.0"


def test_of_a_repeated_key_the_last_value_stays_as_every_json_parser_has_it(db: Rented, session: UUID) -> None:
    text = '{"a": 1, "\\u0061": 2, "b\\u0000": 3, "b\\u0000": 4}'
    with db.as_app() as app:
        assert parsed(stored_and_read(app, session, text)) == parsed(text) == {"a": 2, "b\0": 4}


@pytest.mark.parametrize("text", ["NaN", "Infinity", "{", "", "'a'", '"\x01"', '"\\x"', "[1,]"])
def test_what_is_no_json_is_refused_by_postgres_before_any_function_of_ours(
    db: Rented, session: UUID, text: str
) -> None:
    with nothing_written(db), refused("22P02"), db.as_app() as app:
        append(app, session, content=text)


@pytest.mark.parametrize("level", ["[]", '{"a":}'])
def test_nesting_is_stored_readable_or_refused_whole(db: Rented, session: UUID, level: str) -> None:
    """Up to 10,000 levels always fit; beyond, our own 22W02 or the 54001 of json's input, which comes before us."""

    def is_taken(depth: int) -> bool:
        text = level[:-1] * depth + "1" + level[-1] * depth
        try:
            with db.as_app() as app:
                read = stored_and_read(app, session, text)
        except Error as error:
            # 54001 is raised while the parameter is read: no function of ours is in the context.
            early = error.sqlstate == "54001" and "durable" not in str(error.diag.context)
            if not early and error.sqlstate != "22W02":
                raise
            return False
        assert read.replace(" ", "") == text
        return True

    assert is_taken(10_000)
    before = recorded(db)
    assert not is_taken(100_000)
    assert recorded(db) == before
    taken, not_taken = 10_000, 100_000
    while not_taken - taken > 10:
        middle = (taken + not_taken) // 2
        taken, not_taken = (middle, not_taken) if is_taken(middle) else (taken, middle)


def test_ten_megabytes_are_stored_whole(db: Rented, session: UUID) -> None:
    content = {"parts": [{"text": "wörd " * 1_900_000}]}
    text = json.dumps(content, ensure_ascii=False)
    assert len(text.encode()) > 10_000_000
    with db.as_app() as app:
        app.execute("set local statement_timeout = '20s'")
        append(app, session, content=text)
        assert events(app, session)[0]["content"] == content


def test_psycopgs_json_is_taken(db: Rented, session: UUID) -> None:
    sent = {"a": "\0\ud800\ufffe\U0001f600"}
    with db.as_app() as app:
        append(app, session, content=Json(sent))
        assert events(app, session)[0]["content"] == sent


@pytest.mark.parametrize("wrapper", [Jsonb, lambda given: json.dumps(given).encode()])
def test_psycopgs_jsonb_and_bytes_are_no_arguments_of_these_types(
    db: Rented, session: UUID, wrapper: Callable[[object], object]
) -> None:
    with nothing_written(db), pytest.raises(UndefinedFunction), db.as_app() as app:
        append(app, session, content=wrapper({"a": 1}))


def test_raw_halves_of_a_pair_do_not_leave_python(db: Rented, session: UUID) -> None:
    with nothing_written(db), pytest.raises(UnicodeEncodeError), db.as_app() as app:
        append(app, session, content='"\ud800"')
