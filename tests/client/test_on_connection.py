# Generated from test_on_connection_async.py by tools/async_to_sync.py: change that.
"""A client on a connection that somebody brought takes part in their transaction."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from sqlalchemy.exc import InvalidRequestError

from durable_pg import Durable, Identity
from durable_pg.errors import ConnectionLost, IdentityConflict, IsolationRefused, SessionNotFound, UnexpectedError
from tests.client.brought import BROUGHT, SQLALCHEMY, Brought, bring
from tests.client.every_call import every_call
from tests.support.harness import Database
from tests.support.rented import Rented, nothing_written, stored

IMPLICIT = [way for way in BROUGHT if "autocommit" not in way]


@pytest.fixture(scope="module", autouse=True)
def _orders(module_db: Database) -> None:
    """Make a table of the app's own."""
    with module_db.connect("mig") as mig:
        mig.execute("create table public.orders (tenant text)")
        mig.execute("grant select, insert on public.orders to app")


@pytest.fixture(params=BROUGHT)
def brought(db: Rented, request: pytest.FixtureRequest) -> Iterator[Brought]:
    with bring(db, request.param) as brought:
        yield brought


def me_on(db: Rented, brought: Brought, user: str = "U1") -> Identity:
    return Durable.on(brought.connection).act_as(db.tenant("T1"), user)


def order(db: Rented, brought: Brought) -> None:
    """Write a row of the app's own."""
    brought.execute(f"insert into public.orders values ('{db.tenant('T1')}')")


def seen(db: Rented) -> tuple[int, int]:
    """Return how many orders and sessions somebody else sees."""
    with db.superuser() as root:
        orders = root.execute("select from public.orders where tenant = %s", (db.tenant("T1"),)).fetchall()
    return len(orders), len(stored(db, "sessions"))


def test_a_row_of_the_app_and_a_session_commit_together(db: Rented, brought: Brought) -> None:
    with brought.transaction():
        order(db, brought)
        me_on(db, brought).open_session("support", "s-1")
        assert seen(db) == (0, 0)
    assert seen(db) == (1, 1)


def test_a_row_of_the_app_and_a_session_are_rolled_back_together(db: Rented, brought: Brought) -> None:
    with nothing_written(db), pytest.raises(ZeroDivisionError), brought.transaction():
        order(db, brought)
        me_on(db, brought).open_session("support", "s-1")
        raise ZeroDivisionError
    assert seen(db) == (0, 0)


def test_a_refusal_takes_the_row_of_the_app_with_it(db: Rented, brought: Brought) -> None:
    with nothing_written(db), pytest.raises(SessionNotFound) as refusal, brought.transaction():
        order(db, brought)
        me_on(db, brought).read_events(uuid4())
    assert not refusal.value.may_have_taken_effect
    assert seen(db) == (0, 0)


def test_after_a_refusal_the_transaction_takes_no_further_call(db: Rented, brought: Brought) -> None:
    me = me_on(db, brought)
    with nothing_written(db), pytest.raises(UnexpectedError) as aborted, brought.transaction():
        with pytest.raises(SessionNotFound):
            me.read_events(uuid4())
        me.open_session("support", "s-1")
    assert aborted.value.sqlstate == "25P02"
    assert not aborted.value.may_have_taken_effect


def test_a_refusal_in_a_savepoint_is_survived(db: Rented, brought: Brought) -> None:
    me = me_on(db, brought)
    with brought.transaction():
        order(db, brought)
        with pytest.raises(SessionNotFound), brought.savepoint():
            me.open_session("support", "s-1")
            me.read_events(uuid4())
        me.open_session("support", "s-2")
    assert seen(db) == (1, 1)
    assert [row["session_id"] for row in stored(db, "sessions")] == ["s-2"]


def test_one_transaction_acts_as_one_user(db: Rented, brought: Brought) -> None:
    with nothing_written(db), pytest.raises(IdentityConflict), brought.transaction():
        me_on(db, brought, "U1").open_session("support", "s-1")
        me_on(db, brought, "U2").open_session("support", "s-1")


def test_the_next_transaction_acts_as_the_next_user(db: Rented, brought: Brought) -> None:
    for user in ("U1", "U2"):
        with brought.transaction():
            me_on(db, brought, user).open_session("support", "s-1")
    assert [row["user_id"] for row in stored(db, "sessions")] == ["U1", "U2"]


def test_every_call_works_in_a_transaction(db: Rented, brought: Brought) -> None:
    with brought.transaction():
        every_call(me_on(db, brought))
    assert len(stored(db, "events")) == 3


@pytest.mark.parametrize("way", IMPLICIT)
def test_without_a_transaction_a_call_begins_one_as_any_statement_does(db: Rented, way: str) -> None:
    with bring(db, way) as brought:
        me_on(db, brought).open_session("support", "s-1")
        order(db, brought)
        assert seen(db) == (0, 0)
        brought.connection.rollback()
        assert seen(db) == (0, 0)
        me_on(db, brought).open_session("support", "s-1")
        order(db, brought)
        brought.connection.commit()
        assert seen(db) == (1, 1)


def test_in_autocommit_each_call_is_a_transaction_of_its_own(db: Rented) -> None:
    with bring(db, "psycopg in autocommit") as brought:
        for user in ("U1", "U2"):
            me_on(db, brought, user).open_session("support", "s-1")
        with pytest.raises(SessionNotFound):
            me_on(db, brought).read_events(uuid4())
    assert seen(db) == (0, 2)


@pytest.mark.parametrize("way", SQLALCHEMY)
def test_in_autocommit_of_sqlalchemy_too(db: Rented, way: str) -> None:
    with bring(db, way, isolation_level="AUTOCOMMIT") as brought:
        me_on(db, brought).open_session("support", "s-1")
        assert seen(db) == (0, 1)


@pytest.mark.parametrize("way", SQLALCHEMY)
def test_sqlalchemy_begins_as_it_does_with_a_statement_of_the_app(db: Rented, way: str) -> None:
    with bring(db, way) as brought:
        assert not brought.connection.in_transaction()
        me_on(db, brought).list_sessions()
        assert brought.connection.in_transaction()
        with pytest.raises(InvalidRequestError), brought.connection.begin():
            pass
        brought.connection.commit()
        assert not brought.connection.in_transaction()


@pytest.mark.parametrize("way", SQLALCHEMY)
@pytest.mark.parametrize("options", [{"stream_results": True}, {"yield_per": 1}])
def test_a_connection_of_sqlalchemy_that_streams_its_results_will_do(
    db: Rented, way: str, options: dict[str, object]
) -> None:
    with bring(db, way, **options) as brought:
        every_call(me_on(db, brought))


def test_in_a_stricter_isolation_the_refusal_is_told(db: Rented, brought: Brought) -> None:
    me = me_on(db, brought)
    with nothing_written(db), pytest.raises(IsolationRefused), brought.transaction():
        brought.execute("set transaction isolation level repeatable read")
        run = me.start_run(me.open_session("support", "s-1"), "inv-1")
        me.settle_run(run, "succeeded")


def test_what_the_caller_brought_stays_open(db: Rented, brought: Brought) -> None:
    with Durable.on(brought.connection) as durable:
        durable.act_as(db.tenant("T1"), "U1").list_sessions()
    durable.close()
    assert not brought.connection.closed
    assert brought.execute("select 1") == [(1,)]
    assert durable.act_as(db.tenant("T1"), "U1").list_sessions() == []


def test_a_closed_connection_takes_no_call(db: Rented, brought: Brought) -> None:
    me = me_on(db, brought)
    brought.connection.close()
    with nothing_written(db), pytest.raises(ConnectionLost, match="the connection is closed") as lost:
        me.open_session("support", "s-1")
    assert not lost.value.may_have_taken_effect
    assert lost.value.call == "open_session"


def test_in_a_pipeline_calls_take_their_turn(db: Rented) -> None:
    with bring(db, "psycopg in autocommit") as brought:
        with brought.connection.pipeline(), brought.transaction():
            order(db, brought)
            every_call(me_on(db, brought))
        assert seen(db) == (1, 2)


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_an_effect_that_is_a_write_in_this_database_is_done_exactly_once(
    db: Rented, brought: Brought, ending: str
) -> None:
    me = me_on(db, brought)
    with brought.transaction():
        run = me.start_run(me.open_session("support", "s-1"), "inv-1")

    def place_order() -> str:
        begun = me.begin_effect(run, "order", {"order": 7})
        if begun.outcome == "execute":
            order(db, brought)
            me.finish_effect(begun, "succeeded")
        return begun.outcome

    if ending == "rollback":
        with pytest.raises(ZeroDivisionError), brought.transaction():
            place_order()
            raise ZeroDivisionError
        assert (seen(db), stored(db, "effects")) == ((0, 1), [])
    for outcome in ("execute", "recorded"):
        with brought.transaction():
            assert place_order() == outcome
    assert seen(db) == (1, 1)
