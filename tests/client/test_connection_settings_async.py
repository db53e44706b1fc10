"""A client on somebody's connection works whatever its settings are, and changes none of them."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from psycopg.adapt import Loader
from psycopg.types.json import set_json_dumps, set_json_loads

from durable_pg import AsyncDurable, AsyncIdentity
from durable_pg.errors import SetupError
from tests.client.brought_async import BROUGHT, PSYCOPG, SQLALCHEMY, AsyncBrought, bring_async
from tests.client.every_call_async import every_call_async
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


@pytest_asyncio.fixture(params=BROUGHT)
async def brought_async(db: Rented, request: pytest.FixtureRequest) -> AsyncIterator[AsyncBrought]:
    async with bring_async(db, request.param) as brought:
        yield brought


def me_on_async(db: Rented, connection: Any) -> AsyncIdentity:
    return AsyncDurable.on(connection).act_as(db.tenant("T1"), "U1")


async def test_nothing_of_the_connection_is_changed_on_the_server(db: Rented, brought_async: AsyncBrought) -> None:
    (before,) = await brought_async.execute(OF_SESSION)
    await brought_async.connection.rollback()
    for number in range(8):
        async with brought_async.transaction():
            await every_call_async(me_on_async(db, brought_async.connection), f"s-{number}")
    (after,) = await brought_async.execute(OF_SESSION)
    assert own_settings(after) == own_settings(before)
    assert await brought_async.execute(LEFT_BEHIND) == [NOTHING]


@pytest.mark.parametrize("way", PSYCOPG)
async def test_nothing_of_the_connection_is_changed_in_psycopg(db: Rented, way: str) -> None:
    async with bring_async(db, way) as brought:
        connection = brought.connection
        await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        await connection.set_read_only(False)
        await connection.set_deferrable(True)
        before = {name: getattr(connection, name) for name in ATTRIBUTES}
        dumper = connection.adapters.get_dumper(str, psycopg.adapt.PyFormat.AUTO)
        for number in range(8):
            await every_call_async(me_on_async(db, connection), f"s-{number}")
            await connection.commit()
        assert {name: getattr(connection, name) for name in ATTRIBUTES} == before
        assert connection.adapters.get_dumper(str, psycopg.adapt.PyFormat.AUTO) is dumper
        assert await brought.execute(PREPARED) == []


@pytest.mark.parametrize("way", ["psycopg", *SQLALCHEMY])
@pytest.mark.parametrize("setting", SETTINGS)
async def test_settings_of_the_session_make_no_difference(db: Rented, way: str, setting: str) -> None:
    if "asyncpg" in way and "encoding" in setting:
        pytest.skip("asyncpg speaks UTF-8 only")
    async with bring_async(db, way) as brought:
        await brought.execute(f"set {setting}")
        await every_call_async(me_on_async(db, brought.connection))


@pytest.mark.parametrize("name", OIDS)
async def test_loaders_of_the_connection_make_no_difference(db: Rented, name: str) -> None:
    async with bring_async(db, "psycopg") as brought:
        brought.connection.adapters.register_loader(OIDS[name], Odd)
        await every_call_async(me_on_async(db, brought.connection))


async def test_another_json_module_makes_no_difference(db: Rented) -> None:
    def fail(value: object) -> Any:
        raise AssertionError(value)

    async with bring_async(db, "psycopg") as brought:
        set_json_loads(fail, brought.connection)
        set_json_dumps(fail, brought.connection)
        await every_call_async(me_on_async(db, brought.connection))


@pytest.mark.parametrize("way", PSYCOPG)
async def test_text_that_the_client_encoding_lacks_is_refused_before_it_is_sent(db: Rented, way: str) -> None:
    async with bring_async(db, way) as brought:
        me = me_on_async(db, brought.connection)
        session = await me.open_session("support", "s-1")
        await brought.execute("set client_encoding = latin1")
        await brought.connection.commit()
        with nothing_written(db), pytest.raises(SetupError, match="client_encoding=UTF8") as refusal:
            await me.append_event(session, "user", "\N{ELEPHANT}")
        assert (refusal.value.call, refusal.value.may_have_taken_effect) == ("append_event", False)
        assert (refusal.value.__cause__, refusal.value.__context__) == (None, None)
        assert (await me.append_event(session, "user", "größer")).seq == 1


@pytest.mark.parametrize("way", ["psycopg", "sqlalchemy over psycopg"])
async def test_an_answer_that_the_client_encoding_lacks_is_refused(db: Rented, way: str) -> None:
    async with bring_async(db, "psycopg in autocommit") as writer:
        me = me_on_async(db, writer.connection)
        session = await me.open_session("support", "s-1", {"animal": "\N{ELEPHANT}"})
    async with bring_async(db, way) as brought:
        me = me_on_async(db, brought.connection)
        await brought.execute("set client_encoding = latin1")
        with nothing_written(db), pytest.raises(SetupError, match="client_encoding=UTF8") as refusal:
            await me.get_state(session=session)
        assert refusal.value.sqlstate == "22P05"
