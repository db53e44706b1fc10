"""Every format's messages are read as their fixtures say, and no JSON whatever makes a reader raise."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.errors import StatementTooComplex
from psycopg.types.json import Jsonb

from tests.support.harness import Connection, Database, one

FIXTURES = Path(__file__).parents[1] / "support" / "formats"
FILES = ("adk", "openai_chat", "openai_responses", "anthropic", "mixed", "odd_shapes")
FORMATS = FILES[:4]
IN_ONE_DATABASE = settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def fixtures(file: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FIXTURES / f"{file}.json").read_text("utf-8"))
    return found


def words(content: object) -> Iterator[str]:
    """The keys of a message, its types and roles: what readers look for, and random text would never meet."""
    if isinstance(content, list):
        for inner in content:
            yield from words(inner)
    elif isinstance(content, dict):
        for key, inner in content.items():
            yield key
            yield from [inner] if key in ("type", "role") and isinstance(inner, str) else words(inner)


WORDS = sorted({word for file in ("mixed", "odd_shapes") for case in fixtures(file) for word in words(case["content"])})
# NUL and lone surrogates are refused before content is read.
TEXTS = st.sampled_from(WORDS) | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)
SCALARS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | TEXTS
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=6), max_leaves=30
)


def read(app: Connection, content: object) -> tuple[list[str], bool]:
    found = one(app, "select * from durable.read_message(%s)", Jsonb(content))
    return found["tool_calls"], found["says_something"]


def seen_by(app: Connection, name: str, content: object) -> dict[str, Any]:
    """One format's view: tool_calls, results, others."""
    return one(app, "select * from durable.scan_message(%s, %s)", Jsonb(content), name)


def calls_by_format(app: Connection, content: object) -> dict[str, list[str]]:
    return {name: seen_by(app, name, content)["tool_calls"] for name in FORMATS}


@pytest.mark.parametrize("file", FILES)
def test_fixtures_are_read_as_they_say(db: Database, file: str) -> None:
    expected = {case["name"]: (case["tool_calls"], case["says_something"]) for case in fixtures(file)}
    assert len(expected) == len(fixtures(file)), "two fixtures have one name"
    with db.as_app() as app:
        assert {case["name"]: read(app, case["content"]) for case in fixtures(file)} == expected


@pytest.mark.parametrize("file", FILES)
def test_the_quick_look_misses_no_call(db: Database, file: str) -> None:
    with db.as_app() as app:
        for case in fixtures(file):
            if case["tool_calls"]:
                assert one(app, "select durable.may_call_tools(%s) as may", Jsonb(case["content"]))["may"], case["name"]


@IN_ONE_DATABASE
@given(content=JSON)
def test_the_quick_look_misses_no_call_in_arbitrary_json(db: Database, content: object) -> None:
    with db.as_app() as app:
        calls, _ = read(app, content)
        assert not calls or one(app, "select durable.may_call_tools(%s) as may", Jsonb(content))["may"]


def test_the_quick_look_passes_over_plain_text(db: Database) -> None:
    with db.as_app() as app:
        said = {"role": "model", "parts": [{"text": "I will call you about the tool."}]}
        assert not one(app, "select durable.may_call_tools(%s) as may", Jsonb(said))["may"]


@pytest.mark.parametrize("file", FORMATS)
def test_a_call_is_found_by_its_own_format_alone(db: Database, file: str) -> None:
    expected = {
        case["name"]: {name: case["tool_calls"] if name == file else [] for name in FORMATS} for case in fixtures(file)
    }
    with db.as_app() as app:
        assert {case["name"]: calls_by_format(app, case["content"]) for case in fixtures(file)} == expected


@pytest.mark.parametrize("file", ["mixed", "odd_shapes"])
def test_no_call_is_found_by_two_formats(db: Database, file: str) -> None:
    with db.as_app() as app:
        for case in fixtures(file):
            found = Counter(name for calls in calls_by_format(app, case["content"]).values() for name in calls)
            assert found == Counter(case["tool_calls"]), case["name"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("adk", {"parts": [{"text": "x"}, {"function_call": {"name": "a"}}, {"functionResponse": {"name": "a"}}]}),
        (
            "openai_chat",
            [{"role": "tool", "content": "1"}, {"role": "a", "content": "x", "tool_calls": [{"name": "a"}]}],
        ),
        ("openai_responses", [{"type": "mcp_call", "name": "a"}, {"type": "mcp_call_output"}, {"type": "reasoning"}]),
        ("anthropic", [{"type": "tool_use", "name": "a"}, {"type": "tool_result"}, {"type": "text", "text": "x"}]),
    ],
)
def test_a_format_tells_calls_results_and_other_parts_apart(db: Database, name: str, content: object) -> None:
    with db.as_app() as app:
        assert seen_by(app, name, content) == {"tool_calls": ["a"], "results": 1, "others": 1}


def test_sql_null_is_no_message(db: Database) -> None:
    with db.as_app() as app:
        assert one(app, "select * from durable.read_message(null)") == {"tool_calls": [], "says_something": False}
        for name in FORMATS:
            found = one(app, "select * from durable.scan_message(null, %s)", name)
            assert found == {"tool_calls": [], "results": 0, "others": 0}


def test_any_json_is_read_without_an_error_and_alike_each_time(db: Database) -> None:
    with db.as_app() as app:

        @IN_ONE_DATABASE
        @given(JSON)
        def read_it(content: object) -> None:
            calls, says_something = read(app, content)
            assert read(app, content) == (calls, says_something)
            assert "" not in calls
            assert says_something or not calls
            by_format = calls_by_format(app, content)
            assert Counter(calls) == Counter(name for found in by_format.values() for name in found)

        read_it()


def test_the_short_way_and_the_scan_agree(db: Database) -> None:
    beside = st.dictionaries(TEXTS, JSON, max_size=2)
    messages = st.builds(lambda others, text: {**others, "content": text}, beside, TEXTS)
    with db.as_app() as app:

        @IN_ONE_DATABASE
        @given(messages)
        def read_both(content: object) -> None:
            scan = one(app, "select * from durable.scan_message(%s, null)", Jsonb(content))
            says_something = scan["others"] > 0 or scan["tool_calls"] != []
            assert read(app, content) == (scan["tool_calls"], says_something)

        read_both()


def test_two_lists_read_together_give_what_they_give_apart(db: Database) -> None:
    with db.as_app() as app:

        @IN_ONE_DATABASE
        @given(st.lists(JSON, max_size=4), st.lists(JSON, max_size=4))
        def read_together(left: list[object], right: list[object]) -> None:
            left_calls, left_says = read(app, left)
            right_calls, right_says = read(app, right)
            assert read(app, left + right) == (left_calls + right_calls, left_says or right_says)

        read_together()


@pytest.mark.parametrize(
    "shape",
    [
        "%s",
        '{"parts": [{"text": "", "a": %s}]}',
        '{"role": "a", "unknown": %s}',
        '{"role": "a", "tool_calls": %s}',
        '{"role": "a", "content": [{"type": "tool_use", "id": %s, "name": %s}], "tool_calls": [{"id": %s}]}',
    ],
)
@pytest.mark.parametrize("level", ["[]", '{"a":}'])
def test_nesting_as_deep_as_this_server_stores_is_read(db: Database, shape: str, level: str) -> None:
    def nested(depth: int) -> str:
        return shape.replace("%s", level[:-1] * depth + "1" + level[-1] * depth)

    def is_taken(app: Connection, depth: int, query: str) -> bool:
        try:
            with app.transaction():
                app.execute(query.encode(), (nested(depth),))
        except StatementTooComplex:
            return False
        return True

    with db.as_app() as app:
        taken, refused = 10, 100_000
        while refused - taken > 1:
            middle = (taken + refused) // 2
            taken, refused = (middle, refused) if is_taken(app, middle, "select %s::jsonb") else (taken, middle)
        assert taken > 1000
        given_content = "(select %s::jsonb as content offset 0) as given"
        assert is_taken(app, taken, f"select m.* from {given_content}, lateral durable.read_message(content) as m")


@pytest.mark.parametrize(
    ("content", "calls"),
    [
        ({"role": "user", "content": "word " * 2_000_000}, 0),
        ({"parts": [{"text": "word " * 2_000_000}]}, 0),
        ({"parts": [{"function_call": {"name": "a", "args": {"a": "word " * 2_000_000}}}]}, 1),
        ({"parts": [{"function_call": {"name": "a"}}] * 200_000}, 200_000),
        (
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": str(number), "name": "a"} for number in range(50_000)],
                "tool_calls": [{"id": str(number), "function": {"name": "a"}} for number in range(50_000)],
            },
            50_000,
        ),
    ],
    ids=["chat text", "adk text", "adk call", "200,000 parts", "50,000 blocks repeated in tool_calls"],
)
def test_ten_megabytes_are_read_in_seconds(db: Database, content: object, calls: int) -> None:
    with db.as_app() as app:
        app.execute("set local statement_timeout = '20s'")
        assert len(read(app, content)[0]) == calls
