"""A client on somebody's connection works whatever its settings are, and changes none of them."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.adapt import Loader
from psycopg.types.json import set_json_dumps, set_json_loads

from durable_pg import Durable, Identity
from durable_pg.errors import SetupError
from tests.client.brought import BROUGHT, PSYCOPG, SQLALCHEMY, Brought, bring
from tests.client.every_call import every_call
from tests.client.on_server import LEFT_BEHIND, NOTHING, OF_SESSION, PREPARED, own_settings
from tests.support.rented import Rented, nothing_written

ATTRIBUTES = (
    *("autocommit", "isolation_level", "read_only", "deferrable", "row_factory", "cursor_factory"),
    *("prepare_threshold", "prepared_max", "adapters"),
)
# Some would have to be set by a superuser; these an app, its login or its pooler may set.
SETTINGS = (
    *("DateStyle = 'German, DMY'", "DateStyle = 'SQL, MDY'", "TimeZone = 'Asia/Kathmandu'", "TimeZone = '<+3>-3'"),
    *("standard_conforming_strings = off", "backslash_quote = on", "bytea_output = escape", "extra_float_digits = 0"),
    *("client_encoding = latin1", "client_encoding = sql_ascii", "search_path = ''", "quote_all_identifiers = on"),
    *("transform_null_equals = on", "array_nulls = off", "IntervalStyle = sql_standard", "xmloption = document"),
)
OIDS = {
    name: psycopg.adapters.types[name].oid
    for name in ("uuid", "timestamptz", "int4", "int8", "bool", "bytea", "json", "jsonb", "numeric")
}
OIDS["text[]"] = psycopg.adapters.types["text"].array_oid


class Odd(Loader):
    """Makes something of a value that nobody expects."""

    def load(self, data: bytes | bytearray | memoryview) -> object:
        return bytes(data), "odd"


@pytest.fixture(params=BROUGHT)
def brought(db: Rented, request: pytest.FixtureRequest) -> Iterator[Brought]:
    with bring(db, request.param) as brought:
        yield brought


def me_on(db: Rented, connection: Any) -> Identity:
    return Durable.on(connection).act_as(db.tenant("T1"), "U1")


def test_nothing_of_the_connection_is_changed_on_the_server(db: Rented, brought: Brought) -> None:
    (before,) = brought.execute(OF_SESSION)
    brought.connection.rollback()
    for number in range(8):
        with brought.transaction():
            every_call(me_on(db, brought.connection), f"s-{number}")
    (after,) = brought.execute(OF_SESSION)
    assert own_settings(after) == own_settings(before)
    assert brought.execute(LEFT_BEHIND) == [NOTHING]


@pytest.mark.parametrize("way", PSYCOPG)
def test_nothing_of_the_connection_is_changed_in_psycopg(db: Rented, way: str) -> None:
    with bring(db, way) as brought:
        connection = brought.connection
        connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        connection.set_read_only(False)
        connection.set_deferrable(True)
        before = {name: getattr(connection, name) for name in ATTRIBUTES}
        dumper = connection.adapters.get_dumper(str, psycopg.adapt.PyFormat.AUTO)
        for number in range(8):
            every_call(me_on(db, connection), f"s-{number}")
            connection.commit()
        assert {name: getattr(connection, name) for name in ATTRIBUTES} == before
        assert connection.adapters.get_dumper(str, psycopg.adapt.PyFormat.AUTO) is dumper
        assert brought.execute(PREPARED) == []


@pytest.mark.parametrize("way", ["psycopg", *SQLALCHEMY])
@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_session_make_no_difference(db: Rented, way: str, setting: str) -> None:
    if "asyncpg" in way and "encoding" in setting:
        pytest.skip("asyncpg speaks UTF-8 only")
    with bring(db, way) as brought:
        brought.execute(f"set {setting}")
        every_call(me_on(db, brought.connection))


@pytest.mark.parametrize("name", OIDS)
def test_loaders_of_the_connection_make_no_difference(db: Rented, name: str) -> None:
    with bring(db, "psycopg") as brought:
        brought.connection.adapters.register_loader(OIDS[name], Odd)
        every_call(me_on(db, brought.connection))


def test_another_json_module_makes_no_difference(db: Rented) -> None:
    def fail(value: object) -> Any:
        raise AssertionError(value)

    with bring(db, "psycopg") as brought:
        set_json_loads(fail, brought.connection)
        set_json_dumps(fail, brought.connection)
        every_call(me_on(db, brought.connection))


@pytest.mark.parametrize("way", PSYCOPG)
def test_text_that_the_client_encoding_lacks_is_refused_before_it_is_sent(db: Rented, way: str) -> None:
    with bring(db, way) as brought:
        me = me_on(db, brought.connection)
        session = me.open_session("support", "s-1")
        brought.execute("set client_encoding = latin1")
        brought.connection.commit()
        with nothing_written(db), pytest.raises(SetupError, match="client_encoding=UTF8") as refusal:
            me.append_event(session, "user", "\N{ELEPHANT}")
        assert (refusal.value.call, refusal.value.may_have_taken_effect) == ("append_event", False)
        assert (refusal.value.__cause__, refusal.value.__context__) == (None, None)
        assert (me.append_event(session, "user", "größer")).seq == 1


@pytest.mark.parametrize("way", ["psycopg", "sqlalchemy over psycopg"])
def test_an_answer_that_the_client_encoding_lacks_is_refused(db: Rented, way: str) -> None:
    with bring(db, "psycopg in autocommit") as writer:
        me = me_on(db, writer.connection)
        session = me.open_session("support", "s-1", {"animal": "\N{ELEPHANT}"})
    with bring(db, way) as brought:
        me = me_on(db, brought.connection)
        brought.execute("set client_encoding = latin1")
        with nothing_written(db), pytest.raises(SetupError, match="client_encoding=UTF8") as refusal:
            me.get_state(session=session)
        assert refusal.value.sqlstate == "22P05"
