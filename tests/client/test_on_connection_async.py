"""A client on a connection that somebody brought takes part in their transaction."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio
from sqlalchemy.exc import InvalidRequestError

from durable_pg import AsyncDurable, AsyncIdentity
from durable_pg.errors import ConnectionLost, IdentityConflict, IsolationRefused, SessionNotFound, UnexpectedError
from tests.client.brought_async import BROUGHT, SQLALCHEMY, AsyncBrought, bring_async
from tests.client.every_call_async import every_call_async
from tests.support.harness import Database
from tests.support.rented import Rented, nothing_written, stored

IMPLICIT = [way for way in BROUGHT if "autocommit" not in way]


@pytest.fixture(scope="module", autouse=True)
def _orders(module_db: Database) -> None:
    """Make a table of the app's own."""
    with module_db.connect("mig") as mig:
        mig.execute("create table public.orders (tenant text)")
        mig.execute("grant select, insert on public.orders to app")


@pytest_asyncio.fixture(params=BROUGHT)
async def brought_async(db: Rented, request: pytest.FixtureRequest) -> AsyncIterator[AsyncBrought]:
    async with bring_async(db, request.param) as brought:
        yield brought


def me_on_async(db: Rented, brought: AsyncBrought, user: str = "U1") -> AsyncIdentity:
    return AsyncDurable.on(brought.connection).act_as(db.tenant("T1"), user)


async def order_async(db: Rented, brought: AsyncBrought) -> None:
    """Write a row of the app's own."""
    await brought.execute(f"insert into public.orders values ('{db.tenant('T1')}')")


def seen(db: Rented) -> tuple[int, int]:
    """Return how many orders and sessions somebody else sees."""
    with db.superuser() as root:
        orders = root.execute("select from public.orders where tenant = %s", (db.tenant("T1"),)).fetchall()
    return len(orders), len(stored(db, "sessions"))


async def test_a_row_of_the_app_and_a_session_commit_together(db: Rented, brought_async: AsyncBrought) -> None:
    async with brought_async.transaction():
        await order_async(db, brought_async)
        await me_on_async(db, brought_async).open_session("support", "s-1")
        assert seen(db) == (0, 0)
    assert seen(db) == (1, 1)


async def test_a_row_of_the_app_and_a_session_are_rolled_back_together(db: Rented, brought_async: AsyncBrought) -> None:
    with nothing_written(db), pytest.raises(ZeroDivisionError):
        async with brought_async.transaction():
            await order_async(db, brought_async)
            await me_on_async(db, brought_async).open_session("support", "s-1")
            raise ZeroDivisionError
    assert seen(db) == (0, 0)


async def test_a_refusal_takes_the_row_of_the_app_with_it(db: Rented, brought_async: AsyncBrought) -> None:
    with nothing_written(db), pytest.raises(SessionNotFound) as refusal:
        async with brought_async.transaction():
            await order_async(db, brought_async)
            await me_on_async(db, brought_async).read_events(uuid4())
    assert not refusal.value.may_have_taken_effect
    assert seen(db) == (0, 0)


async def test_after_a_refusal_the_transaction_takes_no_further_call(db: Rented, brought_async: AsyncBrought) -> None:
    me = me_on_async(db, brought_async)
    with nothing_written(db), pytest.raises(UnexpectedError) as aborted:
        async with brought_async.transaction():
            with pytest.raises(SessionNotFound):
                await me.read_events(uuid4())
            await me.open_session("support", "s-1")
    assert aborted.value.sqlstate == "25P02"
    assert not aborted.value.may_have_taken_effect


async def test_a_refusal_in_a_savepoint_is_survived(db: Rented, brought_async: AsyncBrought) -> None:
    me = me_on_async(db, brought_async)
    async with brought_async.transaction():
        await order_async(db, brought_async)
        with pytest.raises(SessionNotFound):
            async with brought_async.savepoint():
                await me.open_session("support", "s-1")
                await me.read_events(uuid4())
        await me.open_session("support", "s-2")
    assert seen(db) == (1, 1)
    assert [row["session_id"] for row in stored(db, "sessions")] == ["s-2"]


async def test_one_transaction_acts_as_one_user(db: Rented, brought_async: AsyncBrought) -> None:
    with nothing_written(db), pytest.raises(IdentityConflict):
        async with brought_async.transaction():
            await me_on_async(db, brought_async, "U1").open_session("support", "s-1")
            await me_on_async(db, brought_async, "U2").open_session("support", "s-1")


async def test_the_next_transaction_acts_as_the_next_user(db: Rented, brought_async: AsyncBrought) -> None:
    for user in ("U1", "U2"):
        async with brought_async.transaction():
            await me_on_async(db, brought_async, user).open_session("support", "s-1")
    assert [row["user_id"] for row in stored(db, "sessions")] == ["U1", "U2"]


async def test_every_call_works_in_a_transaction(db: Rented, brought_async: AsyncBrought) -> None:
    async with brought_async.transaction():
        await every_call_async(me_on_async(db, brought_async))
    assert len(stored(db, "events")) == 3


@pytest.mark.parametrize("way", IMPLICIT)
async def test_without_a_transaction_a_call_begins_one_as_any_statement_does(db: Rented, way: str) -> None:
    async with bring_async(db, way) as brought:
        await me_on_async(db, brought).open_session("support", "s-1")
        await order_async(db, brought)
        assert seen(db) == (0, 0)
        await brought.connection.rollback()
        assert seen(db) == (0, 0)
        await me_on_async(db, brought).open_session("support", "s-1")
        await order_async(db, brought)
        await brought.connection.commit()
        assert seen(db) == (1, 1)


async def test_in_autocommit_each_call_is_a_transaction_of_its_own(db: Rented) -> None:
    async with bring_async(db, "psycopg in autocommit") as brought:
        for user in ("U1", "U2"):
            await me_on_async(db, brought, user).open_session("support", "s-1")
        with pytest.raises(SessionNotFound):
            await me_on_async(db, brought).read_events(uuid4())
    assert seen(db) == (0, 2)


@pytest.mark.parametrize("way", SQLALCHEMY)
async def test_in_autocommit_of_sqlalchemy_too(db: Rented, way: str) -> None:
    async with bring_async(db, way, isolation_level="AUTOCOMMIT") as brought:
        await me_on_async(db, brought).open_session("support", "s-1")
        assert seen(db) == (0, 1)


@pytest.mark.parametrize("way", SQLALCHEMY)
async def test_sqlalchemy_begins_as_it_does_with_a_statement_of_the_app(db: Rented, way: str) -> None:
    async with bring_async(db, way) as brought:
        assert not brought.connection.in_transaction()
        await me_on_async(db, brought).list_sessions()
        assert brought.connection.in_transaction()
        with pytest.raises(InvalidRequestError):
            async with brought.connection.begin():
                pass
        await brought.connection.commit()
        assert not brought.connection.in_transaction()


@pytest.mark.parametrize("way", SQLALCHEMY)
@pytest.mark.parametrize("options", [{"stream_results": True}, {"yield_per": 1}])
async def test_a_connection_of_sqlalchemy_that_streams_its_results_will_do(
    db: Rented, way: str, options: dict[str, object]
) -> None:
    async with bring_async(db, way, **options) as brought:
        await every_call_async(me_on_async(db, brought))


async def test_in_a_stricter_isolation_the_refusal_is_told(db: Rented, brought_async: AsyncBrought) -> None:
    me = me_on_async(db, brought_async)
    with nothing_written(db), pytest.raises(IsolationRefused):
        async with brought_async.transaction():
            await brought_async.execute("set transaction isolation level repeatable read")
            run = await me.start_run(await me.open_session("support", "s-1"), "inv-1")
            await me.settle_run(run, "succeeded")


async def test_what_the_caller_brought_stays_open(db: Rented, brought_async: AsyncBrought) -> None:
    async with AsyncDurable.on(brought_async.connection) as durable:
        await durable.act_as(db.tenant("T1"), "U1").list_sessions()
    await durable.close()
    assert not brought_async.connection.closed
    assert await brought_async.execute("select 1") == [(1,)]
    assert await durable.act_as(db.tenant("T1"), "U1").list_sessions() == []


async def test_a_closed_connection_takes_no_call(db: Rented, brought_async: AsyncBrought) -> None:
    me = me_on_async(db, brought_async)
    await brought_async.connection.close()
    with nothing_written(db), pytest.raises(ConnectionLost, match="the connection is closed") as lost:
        await me.open_session("support", "s-1")
    assert not lost.value.may_have_taken_effect
    assert lost.value.call == "open_session"


async def test_in_a_pipeline_calls_take_their_turn(db: Rented) -> None:
    async with bring_async(db, "psycopg in autocommit") as brought:
        async with brought.connection.pipeline(), brought.transaction():
            await order_async(db, brought)
            await every_call_async(me_on_async(db, brought))
        assert seen(db) == (1, 2)


@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_an_effect_that_is_a_write_in_this_database_is_done_exactly_once(
    db: Rented, brought_async: AsyncBrought, ending: str
) -> None:
    me = me_on_async(db, brought_async)
    async with brought_async.transaction():
        run = await me.start_run(await me.open_session("support", "s-1"), "inv-1")

    async def place_order_async() -> str:
        begun = await me.begin_effect(run, "order", {"order": 7})
        if begun.outcome == "execute":
            await order_async(db, brought_async)
            await me.finish_effect(begun, "succeeded")
        return begun.outcome

    if ending == "rollback":
        with pytest.raises(ZeroDivisionError):
            async with brought_async.transaction():
                await place_order_async()
                raise ZeroDivisionError
        assert (seen(db), stored(db, "effects")) == ((0, 1), [])
    for outcome in ("execute", "recorded"):
        async with brought_async.transaction():
            assert await place_order_async() == outcome
    assert seen(db) == (1, 1)
