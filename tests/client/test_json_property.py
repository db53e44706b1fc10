"""Any value is refused by a path that leads to the fault, or comes back equal from every column it can be sent to."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from durable_pg._wire.json_text import NotStorable, decode, encode
from tests.client.odd_json import EQUAL, REFUSED, REFUSED_AS_A_WHOLE
from tests.support.calls import append, call, events, open_session, start
from tests.support.harness import Connection, Database, refused, value

PURE = settings(deadline=None, database=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
IN_ONE_DATABASE = settings(
    PURE, max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)

PIECES = st.sampled_from([*'\0\ud83d\ude00\ufffe\\"/eé,:[]{}1 ', "1e-05", ",1e-05,", "\\u0000", "fffe", "\U0001f600"])
TEXTS = st.lists(PIECES, max_size=6).map("".join) | st.text(st.characters(codec=None, categories=None), max_size=4)
EDGES = st.sampled_from([1e16, 1e22, 1e23, 5e-324, -0.0, 1e-7, 10**4299, 2**64])
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | EDGES
SOUND = st.none() | st.booleans() | NUMBERS | TEXTS | st.sampled_from(EQUAL)
ODD = st.sampled_from([given_ for given_, *_ in (*REFUSED, *REFUSED_AS_A_WHOLE) if not isinstance(given_, Iterator)])


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)


def odd_containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    odd_keys = st.dictionaries(TEXTS | st.integers() | st.none(), inner, max_size=2)
    return containers(inner) | odd_keys | st.lists(inner, max_size=2).map(tuple)


JSON: st.SearchStrategy[Any] = st.recursive(SOUND, containers, max_leaves=12)
ANYTHING: st.SearchStrategy[Any] = st.recursive(SOUND | ODD, odd_containers, max_leaves=12)
STEP = re.compile(r'\.([^.\[\]"]+)|\[(\d+)\]|\["(?:[^"\\]|\\.)*"\]')


def led_to(whole: Any, path: str) -> Any:
    """Follow a path from the value to the part at fault; a key is found by how it is shown."""
    part, place = whole, len("content")
    while place < len(path):
        step = STEP.match(path, place)
        assert step is not None, path
        if step[2] is not None:
            part = part[int(step[2])]
        else:
            (part,) = (inner for key, inner in part.items() if shown(key) == step[0])
        place = step.end()
    return part


def shown(key: str) -> str:
    with pytest.raises(NotStorable) as caught:
        encode({key: ()}, "")
    return caught.value.path


@PURE
@given(ANYTHING)
@example([1e23, "1e+23", {"a": 5e-324}])
@example({"a": ["\ud83d", "\ude00", "\ud83d\ude00"]})
@example([{"": [{"\0": {1: 1}}]}])
def test_any_value_is_encoded_equal_or_refused_by_a_path_that_leads_to_the_fault(whole: Any) -> None:
    try:
        text = encode(whole, "content")
    except NotStorable as error:
        refusal = error
    else:
        assert json.loads(text) == whole == decode(text, "content")
        text.encode()
        return
    str(refusal).encode()
    assert str(refusal).isprintable()
    part = led_to(whole, refusal.path)
    # The part alone is refused for the same reason: nothing further in, nothing beside it.
    with pytest.raises(NotStorable) as again:
        encode(dict.fromkeys(part, 1) if "keys" in refusal.reason else part, "content")
    assert (again.value.path, again.value.reason) == ("content", refusal.reason)


TRAPS = [
    *(1e23, -1e23, 1e16, 5e-324, 1.7976931348623157e308, -0.0, 2**63, 10**4299, 0.1, True),
    *("\0", "\ud800", "\ude00\ud83d", "\ufffe", "\ufffe0000", "\U0001f600", "1e+23", '\\",1e-05,', "\\u0000"),
    {"a": [1e-05, ",1e-05,", "\0", 1e300], "\0": "\ud83d", "\ufffe": {"\ude00": None}},
    ["\ud83d\ud83d\\\ude00", {"": [[], {}, [[1e22]]]}],
    *EQUAL,
]


@pytest.fixture
def app(module_db: Database) -> Iterator[Connection]:
    with module_db.connect("app", autocommit=True) as connection:
        yield connection


@contextmanager
def acting(app: Connection) -> Iterator[Connection]:
    with app.transaction():
        app.execute("select durable.act_as('T1', 'U1')")
        yield app


def sent(whole: Any, field: str) -> str | None:
    """Return the text that is sent, None for a value that is refused before."""
    try:
        return encode(whole, field)
    except NotStorable:
        return None


def same(text: Any, whole: Any) -> bool:
    return bool(decode(text, "field") == whole)


@pytest.mark.parametrize("sure", TRAPS, ids=ascii)
def test_every_trap_comes_back_equal_and_of_its_type(app: Connection, sure: Any) -> None:
    with acting(app):
        read = appended(app, open_session(app, str(uuid4())), encode(sure, "content"))[0]
    assert same(read, sure)
    if type(sure) in (int, float, str, bool):
        assert type(decode(read, "content")) is type(sure)


def nested(levels: int) -> Any:
    whole: Any = "\0"
    for level in range(levels):
        whole = [whole] if level % 2 else {"\ud800": whole}
    return whole


def appended(app: Connection, session: UUID, content: str, metadata: str | None = None) -> tuple[str, str]:
    seq = append(app, session, content=content, metadata=metadata, event_id=str(uuid4()))["seq"]
    query = (
        "select content::text as content, metadata::text as metadata"
        " from durable.read_events(session_uid => %s, after_seq => %s)"
    )
    (row,) = app.execute(query.encode(), (session, seq - 1)).fetchall()
    return row["content"], row["metadata"]


def test_a_deep_value_comes_back_equal_from_both_columns(app: Connection) -> None:
    text = encode({"deep": nested(500)}, "content")
    with acting(app):
        for read in appended(app, open_session(app, "deep"), text, text):
            assert same(read, {"deep": nested(500)})


def test_content_and_metadata_come_back_equal_or_nothing_is_written(app: Connection) -> None:
    with acting(app):
        session = open_session(app, "events")

    @IN_ONE_DATABASE
    @given(JSON, st.dictionaries(TEXTS, JSON, max_size=3))
    def round_trip(content: Any, metadata: dict[str, Any]) -> None:
        text, more = sent(content, "content"), sent(metadata, "metadata")
        if text is None or more is None:
            return
        with acting(app):
            before = len(events(app, session))
        try:
            with acting(app):
                read = appended(app, session, text, more)
        except psycopg.Error as error:
            if error.sqlstate != "22W02":
                raise
            with acting(app):
                assert len(events(app, session)) == before
        else:
            assert same(read[0], content)
            assert same(read[1], metadata)

    round_trip()


def test_state_comes_back_equal(app: Connection) -> None:
    query = "select state::text from durable.get_state(session_uid => %s)"

    @IN_ONE_DATABASE
    @given(st.dictionaries(TEXTS.map("k{}".format), JSON, max_size=3))
    def round_trip(state: dict[str, Any]) -> None:
        text = sent(state, "state")
        if text is not None:
            with acting(app):
                session = open_session(app, str(uuid4()), state=text)
                assert same(value(app, query, session), state)

    round_trip()


def test_input_result_and_error_of_a_run_come_back_equal(app: Connection) -> None:
    with acting(app):
        session = open_session(app, "runs")
    query = "select input::text, result::text, error::text from durable.list_runs(session_uid => %s) where run_uid = %s"

    @IN_ONE_DATABASE
    @given(JSON, JSON, JSON)
    def round_trip(input_: Any, result: Any, error: Any) -> None:
        texts = [sent(whole, "field") for whole in (input_, result, error)]
        if None in texts:
            return
        with acting(app):
            run = start(app, session, str(uuid4()), input=texts[0])
            call(app, "settle_run", run_uid=run, attempt=1, status="failed", result=texts[1], error=texts[2])
            (row,) = app.execute(query.encode(), (session, run)).fetchall()
        assert same(row["input"], input_)
        assert same(row["result"], result)
        assert same(row["error"], error)

    round_trip()


def test_a_number_beyond_postgres_is_refused_by_its_path_and_nothing_is_written(app: Connection) -> None:
    with acting(app):
        session = open_session(app, "too large")
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        text = encode({"parts": [10**131073]}, "content")
    finally:
        sys.set_int_max_str_digits(before)
    with refused("22W02", match=r"^content\.parts\[0\]"), acting(app):
        append(app, session, content=text)
    with acting(app):
        assert events(app, session) == []


def test_numbers_that_others_wrote_by_sql_are_read_exactly(app: Connection) -> None:
    with acting(app):
        session = open_session(app, "by others")
        read = appended(app, session, f"[1{'0' * 400}.5, 1{'0' * 5000}, 1.50]")[0]
    assert [str(number) for number in decode(read, "content")[::2]] == [f"1{'0' * 400}.5", "1.5"]
    assert decode(read, "content")[1] == 10**5000
