# Generated from test_waiting_async.py by tools/async_to_sync.py: change that.
"""A call that waits for somebody else's transaction, and what may come in between."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg_pool import ConnectionPool
from sqlalchemy.engine import create_engine

from durable_pg import Durable, Identity
from durable_pg.errors import (
    CallCancelled,
    ConnectionLost,
    DurableError,
    IsolationRefused,
    LockTimeout,
    ReadOnly,
    TryAgain,
)
from durable_pg.types import Session
from tests.client.disturbing import cancel, held, once_blocked, runs, terminate, told, wait_until
from tests.client.ways import drivers
from tests.support.harness import Connection
from tests.support.rented import Rented, nothing_written, stored

TIMEOUTS = {
    "statement_timeout": (CallCancelled, "57014"),
    "lock_timeout": (LockTimeout, "55P03"),
}


def url(db: Rented, options: str = "", driver: str = "") -> str:
    address = db.url("app").replace("postgresql://", f"postgresql+{driver}://" if driver else "postgresql://")
    return f"{address}{'&' if '?' in address else '?'}options={options}" if options else address


@pytest.fixture(params=({}, {"autocommit": True}), ids=("pool", "autocommit pool"))
def pool(db: Rented, request: pytest.FixtureRequest) -> Iterator[ConnectionPool]:
    with ConnectionPool(url(db), min_size=1, max_size=1, open=False, kwargs=request.param) as pool:
        yield pool


@pytest.fixture
def me(db: Rented, pool: ConnectionPool) -> Identity:
    return Durable(pool).act_as(db.tenant("T1"), "U1")


@pytest.fixture
def session(me: Identity) -> Session:
    return me.open_session("support", "s-1")


def assert_told(error: DurableError, kind: type[DurableError], sqlstate: str | None, *, uncertain: bool) -> None:
    assert told(error) == (kind, uncertain, "append_event")
    # Older drivers have no SQLSTATE of a farewell (psycopg before 3.3), or one of their own (asyncpg's 08003).
    farewell = {None, "08003"} if psycopg.__version__ < "3.3" else set()
    assert error.sqlstate == sqlstate or error.sqlstate in farewell
    assert error.names["user_id"] == "U1"


@pytest.mark.parametrize("timeout", TIMEOUTS)
def test_a_call_that_waits_for_too_long_is_undone(db: Rented, me: Identity, session: Session, timeout: str) -> None:
    kind, sqlstate = TIMEOUTS[timeout]
    address = url(db, f"-c%20{timeout}%3D100ms")
    with Durable.from_url(address, max_size=1) as durable:
        caller = durable.act_as(db.tenant("T1"), "U1")
        with held(db, session.session_uid), nothing_written(db), pytest.raises(kind) as caught:
            caller.append_event(session, "agent", 1, event_id="evt-1")
        assert_told(caught.value, kind, sqlstate, uncertain=False)
        assert "again" in caught.value.hint
        assert (caller.append_event(session, "agent", 1, event_id="evt-1")).outcome == "appended"


def test_a_cancelled_call_is_undone_and_its_connection_goes_on(
    db: Rented, pool: ConnectionPool, me: Identity, session: Session
) -> None:
    with pool.connection() as connection:
        backend, autocommit = connection.info.backend_pid, connection.autocommit
    with (
        held(db, session.session_uid) as holder,
        nothing_written(db),
        pytest.raises(CallCancelled) as caught,
        once_blocked(db, holder, cancel),
    ):
        me.append_event(session, "agent", 1, event_id="evt-1")
    assert_told(caught.value, CallCancelled, "57014", uncertain=False)
    with pool.connection() as connection:
        assert (connection.info.backend_pid, connection.autocommit) == (backend, autocommit)
    assert (me.append_event(session, "agent", 1)).outcome == "appended"


def test_a_call_whose_backend_is_ended_may_have_taken_effect(db: Rented, me: Identity, session: Session) -> None:
    with (
        held(db, session.session_uid) as holder,
        nothing_written(db),
        pytest.raises(ConnectionLost) as caught,
        once_blocked(db, holder, terminate),
    ):
        me.append_event(session, "agent", 1)
    assert_told(caught.value, ConnectionLost, "57P01", uncertain=True)
    assert (me.append_event(session, "agent", 1)).outcome == "appended"


def test_a_call_whose_backend_is_ended_is_repeated_if_it_may_be(db: Rented, me: Identity, session: Session) -> None:
    with held(db, session.session_uid) as holder:

        def terminate_and_let_go(root: Connection, pid: int) -> None:
            terminate(root, pid)
            holder.rollback()

        with once_blocked(db, holder, terminate_and_let_go):
            appended = me.append_event(session, "agent", 1, event_id="evt-1")
    assert appended.outcome == "appended"
    assert len(stored(db, "events")) == 1


def test_in_a_transaction_a_call_whose_backend_is_ended_goes_with_it(
    db: Rented, me: Identity, session: Session
) -> None:
    with psycopg.Connection.connect(url(db)) as connection:
        caller = Durable.on(connection).act_as(db.tenant("T1"), "U1")
        with (
            held(db, session.session_uid) as holder,
            nothing_written(db),
            pytest.raises(ConnectionLost) as caught,
            once_blocked(db, holder, terminate),
        ):
            caller.open_session("support", "s-2")
            caller.append_event(session, "agent", 1, event_id="evt-1")
        assert_told(caught.value, ConnectionLost, "57P01", uncertain=False)
        with pytest.raises(ConnectionLost) as caught:
            caller.append_event(session, "agent", 1)
        assert_told(caught.value, ConnectionLost, None, uncertain=False)


def test_in_autocommit_a_call_whose_backend_is_ended_may_have_taken_effect(
    db: Rented, me: Identity, session: Session
) -> None:
    with psycopg.Connection.connect(url(db), autocommit=True) as connection:
        caller = Durable.on(connection).act_as(db.tenant("T1"), "U1")
        with (
            held(db, session.session_uid) as holder,
            nothing_written(db),
            pytest.raises(ConnectionLost) as caught,
            once_blocked(db, holder, terminate),
        ):
            caller.append_event(session, "agent", 1, event_id="evt-1")
        assert_told(caught.value, ConnectionLost, "57P01", uncertain=True)


def test_a_transaction_that_was_idle_for_too_long_is_lost(db: Rented, me: Identity, session: Session) -> None:
    address = url(db, "-c%20idle_in_transaction_session_timeout%3D50ms")
    with psycopg.Connection.connect(address) as connection:
        caller = Durable.on(connection).act_as(db.tenant("T1"), "U1")
        with nothing_written(db):
            caller.append_event(session, "agent", 1)
            backend = connection.info.backend_pid
            wait_until(lambda: not runs(db, backend))
        with pytest.raises(ConnectionLost) as caught:
            caller.append_event(session, "agent", 2)
        assert_told(caught.value, ConnectionLost, "25P03", uncertain=False)


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("driver", drivers)
def test_on_a_connection_of_sqlalchemy_it_is_the_same(
    db: Rented, me: Identity, session: Session, driver: str, autocommit: bool
) -> None:
    engine = create_engine(url(db, driver=driver))
    with engine.connect() as connection:
        if autocommit:
            connection.execution_options(isolation_level="AUTOCOMMIT")
        caller = Durable.on(connection).act_as(db.tenant("T1"), "U1")
        with (
            held(db, session.session_uid) as holder,
            nothing_written(db),
            pytest.raises(ConnectionLost) as caught,
            once_blocked(db, holder, terminate),
        ):
            caller.append_event(session, "agent", 1, event_id="evt-1")
        assert_told(caught.value, ConnectionLost, "57P01", uncertain=autocommit)
        with pytest.raises(ConnectionLost) as caught:
            caller.append_event(session, "agent", 1)
        assert_told(caught.value, ConnectionLost, None, uncertain=False)
        connection.rollback()
    engine.dispose()


@pytest.mark.parametrize("driver", drivers)
def test_on_a_connection_of_sqlalchemy_a_cancelled_call_is_told_too(
    db: Rented, me: Identity, session: Session, driver: str
) -> None:
    engine = create_engine(url(db, driver=driver))
    with engine.connect() as connection:
        caller = Durable.on(connection).act_as(db.tenant("T1"), "U1")
        with (
            held(db, session.session_uid) as holder,
            nothing_written(db),
            pytest.raises(CallCancelled) as caught,
            once_blocked(db, holder, cancel),
        ):
            caller.append_event(session, "agent", 1)
        assert_told(caught.value, CallCancelled, "57014", uncertain=False)
        connection.rollback()
        assert (caller.append_event(session, "agent", 1)).outcome == "appended"
    engine.dispose()


def test_a_deadlock_is_to_be_tried_again(db: Rented, me: Identity, session: Session) -> None:
    other = me.open_session("support", "s-2")
    with psycopg.Connection.connect(url(db)) as connection:
        caller = Durable.on(connection).act_as(db.tenant("T1"), "U1")
        caller.append_event(other, "agent", 1)

        with held(db, session.session_uid) as holder:

            def want_the_other(*_: object) -> None:
                # The one that is found out to be in a deadlock is the client's.
                holder.execute("select set_config('deadlock_timeout', '1h', false)")
                holder.execute("select from durable.sessions where session_uid = %s for update", (other.session_uid,))

            with nothing_written(db), pytest.raises(TryAgain) as caught, once_blocked(db, holder, want_the_other):
                try:
                    caller.append_event(session, "agent", 1)
                finally:
                    connection.rollback()
        assert_told(caught.value, TryAgain, "40P01", uncertain=False)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_in_a_stricter_isolation_a_newer_row_is_to_be_tried_again(
    db: Rented, me: Identity, session: Session, level: str
) -> None:
    run = me.start_run(session, "inv-1")
    with psycopg.Connection.connect(url(db)) as connection:
        connection.execute(f"set transaction isolation level {level}".encode())
        caller = Durable.on(connection).act_as(db.tenant("T1"), "U1")
        caller.read_events(session)
        me.append_event(session, "agent", 1)
        with nothing_written(db), pytest.raises(TryAgain) as caught:
            caller.append_event(session, "agent", 1)
        assert_told(caught.value, TryAgain, "40001", uncertain=False)
        connection.rollback()
        connection.execute(f"set transaction isolation level {level}".encode())
        with nothing_written(db), pytest.raises(IsolationRefused) as refused:
            caller.settle_run(run, "succeeded")
        assert told(refused.value) == (IsolationRefused, False, "settle_run")


def test_where_nothing_may_be_written_a_call_says_so(db: Rented, me: Identity, session: Session) -> None:
    with Durable.from_url(url(db, "-c%20default_transaction_read_only%3Don"), max_size=1) as durable:
        caller = durable.act_as(db.tenant("T1"), "U1")
        assert caller.read_events(session) == []
        with nothing_written(db), pytest.raises(ReadOnly, match="read-only") as caught:
            caller.append_event(session, "agent", 1)
        assert_told(caught.value, ReadOnly, "25006", uncertain=False)
