"""Three ways to the database: a pool, a connection of psycopg, a connection of SQLAlchemy. One call, one statement."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import psycopg
import sqlalchemy
from psycopg import AsyncConnection, AsyncCursor
from psycopg.pq import ConnStatus, DiagnosticField, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from durable_pg._async.waiting import hand_back
from durable_pg._wire.address import pool_settings, unreachable
from durable_pg._wire.faults import not_accepted, not_encodable, not_sent, translate
from durable_pg._wire.statements import QUERIES, Call, with_colons
from durable_pg._wire.telemetry import observed, sent_again
from durable_pg._wire.values import pool_sizes
from durable_pg.errors import CannotConnect, ConnectionLost, DurableError, JsonNotReadable, PoolNeeded, PoolNotOpen

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection as AsyncSqlalchemyConnection

T = TypeVar("T")
Rows = Sequence[Sequence[Any]]


class AsyncWay(Protocol):
    """How a call gets to the database and its rows come back. What was brought is neither opened nor closed."""

    async def fetch(self, call: Call[Any]) -> Rows: ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...


async def run(way: AsyncWay, call: Call[T]) -> T:
    """Make a call, and see to it that it can be seen."""
    with observed(call) as seen:
        rows: Rows | None = None
        with suppress(UnicodeEncodeError):
            rows = await way.fetch(call)
        if rows is None:
            # Outside the handler: the driver's error holds the text, and is not to be this one's context.
            raise not_encodable(call)
        try:
            result = call.read(rows)
        except JsonNotReadable as error:
            error.call, error.names, error.may_have_taken_effect = call.name, call.names, call.writes
            raise
        seen.answered(result)
        return result


class AsyncOnPool:
    """Each call is a transaction of its own on whichever connection is free."""

    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        self.pool = pool
        # Since the last time that it gave a connection: while a server is down, attempts become ever fewer.
        self._failures_before = self._failures()

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def fetch(self, call: Call[Any]) -> Rows:
        try:
            return await self._fetch(call)
        except ConnectionLost as error:
            if not call.repeatable:
                raise
            lost = error
        sent_again(call)
        try:
            return await self._fetch(call)
        except DurableError as error:
            # Whatever has become of the second time, the first may have been heard.
            error.may_have_taken_effect |= lost.may_have_taken_effect
            raise

    async def _fetch(self, call: Call[Any]) -> Rows:
        # A server that was restarted leaves as many dead connections as the pool holds.
        for _ in range(max(self.pool.max_size, 1) + 1):
            try:
                connection = await self.pool.getconn()
            except psycopg.Error as error:
                raise not_sent(error, call, server_failed=self._failures() > self._failures_before) from error
            autocommit = connection.autocommit
            try:
                self._failures_before = self._failures()
                if _is_alive(connection):
                    return await _fetch_on(connection, call)
                await connection.close()
            finally:
                try:
                    # An interruption may have come anywhere: what is not as it was is thrown away.
                    if connection.autocommit != autocommit:
                        await connection.close()
                finally:
                    await hand_back(self.pool, connection)
        raise ConnectionLost("every connection of the pool was dead", call=call.name, names=call.names)

    def _failures(self) -> int:
        """How often the pool has failed to connect."""
        return self.pool.get_stats().get("connections_errors", 0)


class AsyncOnOwnPool(AsyncOnPool):
    """A pool for a URL, of this client alone."""

    def __init__(self, url: str | None, **sizes: Any) -> None:
        self._url = url
        self._settings = pool_settings(url)
        self._closed = False
        super().__init__(AsyncConnectionPool(open=False, **pool_sizes(**sizes), **self._settings))

    async def open(self) -> None:
        if self._closed:
            raise PoolNotOpen("this client was closed", hint="Make another one; a pool opens once.")
        if not self.pool.closed:
            return
        # A pool would go on trying until its timeout, and not say why.
        refusal = await self._try_to_connect()
        if refusal is not None:
            raise refusal
        if self._closed:
            raise PoolNotOpen("this client was closed while it was being opened", hint="Make another one.")
        await self.pool.open()

    async def _try_to_connect(self) -> CannotConnect | None:
        """Return and don't raise: psycopg's error, which would come along as the context, keeps the password."""
        try:
            connection = await AsyncConnection.connect(self._settings["conninfo"], **self._settings["kwargs"])
        except psycopg.Error as error:
            return unreachable(error, self._url)
        except UnicodeError:
            return CannotConnect("can't connect to Postgres", detail="the host's name is none")
        await connection.close()
        return None

    async def close(self) -> None:
        self._closed = True
        await self.pool.close()


async def _fetch_on(connection: AsyncConnection[Any], call: Call[Any]) -> Rows:
    """One statement, one transaction, one round trip: without autocommit, BEGIN and COMMIT would be two more."""
    before = connection.autocommit
    try:
        if not before:
            await connection.set_autocommit(True)
        return await _execute(connection, call)
    except psycopg.Error as error:
        raise translate(error, call) from error
    finally:
        # A connection that was broken or interrupted is thrown away by the pool.
        if not before and connection.info.transaction_status == TransactionStatus.IDLE:
            await connection.set_autocommit(False)


async def _execute(connection: AsyncConnection[Any], call: Call[Any]) -> Rows:
    # A cursor of our own: the connection's factories and its prepare_threshold are the caller's.
    async with AsyncCursor(connection, row_factory=tuple_row) as cursor:
        await cursor.execute(QUERIES[call.name], call.parameters, prepare=False)
        return await cursor.fetchall()


def _is_alive(connection: AsyncConnection[Any]) -> bool:
    """Whether nothing is known to have ended an idle connection. Asks the socket and not the server: no round trip.

    A server that went away has left its farewell, or the end of the stream, to be read.
    """
    pgconn = connection.pgconn
    if pgconn.status != ConnStatus.OK:
        return False
    with selectors.DefaultSelector() as selector:
        selector.register(pgconn.socket, selectors.EVENT_READ)
        if not selector.select(0):
            return True
        with _farewells(pgconn) as farewells:
            # A few rounds. Whoever is alive has next to nothing to say.
            for _ in range(8):
                try:
                    pgconn.consume_input()
                except psycopg.OperationalError:
                    return False
                if not selector.select(0):
                    break
            pgconn.is_busy()  # reads what has come in
    return pgconn.status == ConnStatus.OK and not farewells


@contextmanager
def _farewells(pgconn: PGconn) -> Iterator[list[PGresult]]:
    """Collect what the server says of its own accord before it leaves; the end of the stream may come later."""
    found: list[PGresult] = []
    before = pgconn.notice_handler

    def listen(notice: PGresult) -> None:
        if notice.error_field(DiagnosticField.SEVERITY_NONLOCALIZED) in {b"FATAL", b"PANIC"}:
            found.append(notice)
        if before is not None:
            before(notice)

    pgconn.notice_handler = listen
    try:
        yield found
    finally:
        pgconn.notice_handler = before


class AsyncOnPsycopg:
    """Calls take part in whatever transaction the connection is in; nothing is retried, committed or closed."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self.connection = connection

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def fetch(self, call: Call[Any]) -> Rows:
        connection = self.connection
        if connection.closed:
            raise ConnectionLost("the connection is closed", call=call.name, names=call.names)
        open_transaction = connection.info.transaction_status != TransactionStatus.IDLE
        try:
            return await _execute(connection, call)
        except psycopg.Error as error:
            undone = open_transaction or not connection.autocommit
            raise translate(error, call, undone_with_connection=undone) from error


class AsyncOnSqlalchemy:
    """The same on a connection of SQLAlchemy, of whatever driver, which begins its transaction as it always does."""

    def __init__(self, connection: AsyncSqlalchemyConnection) -> None:
        self.connection = connection

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def fetch(self, call: Call[Any]) -> Rows:
        undone = not self._is_autocommit()
        try:
            result = await self.connection.execute(_text(call.name), dict(call.parameters), execution_options=_OPTIONS)
            return result.all()
        except DBAPIError as error:
            # Not from SQLAlchemy's own, whose text repeats the parameters.
            raise translate(error, call, undone_with_connection=undone) from error.orig
        except (OSError, asyncio.TimeoutError) as error:
            # asyncpg's command_timeout, for one.
            raise translate(error, call, undone_with_connection=undone) from error
        except SQLAlchemyError as error:
            raise not_accepted(error, call) from error

    def _is_autocommit(self) -> bool:
        # Asked before the call: after a broken one there may be no connection left to ask.
        sync: Any = getattr(self.connection, "sync_connection", self.connection)
        if sync is None or sync.closed or sync.invalidated:
            return True
        return bool(getattr(sync.connection.dbapi_connection, "autocommit", True))


# Of what the caller may have set on the connection, this would leave rows on the server, in a cursor.
_OPTIONS = {"stream_results": False, "yield_per": None}


@cache
def _text(name: str) -> sqlalchemy.TextClause:
    return sqlalchemy.text(with_colons(QUERIES[name]))


def patience(way: AsyncWay) -> float:
    """How many seconds a pool lets its callers wait. Raises PoolNeeded for a connection that was brought."""
    if isinstance(way, AsyncOnPool):
        return way.pool.timeout
    raise PoolNeeded(
        "run() needs a client over a pool, and this one is on a connection of the caller's",
        detail="What run() records has to be committed before a tool is called; here that is up to the caller.",
        hint="Make the client with from_url() or of a pool. For an effect that is itself a write in this database use "
        "begin_effect() and finish_effect() on your connection: it joins your transaction, and is done exactly once.",
    )


def way_on(connection: object) -> AsyncWay:
    """The way over a connection that was brought. Raises TypeError for anything else."""
    if isinstance(connection, AsyncConnection):
        return AsyncOnPsycopg(connection)
    sqlalchemys = _as_sqlalchemys(connection)
    if sqlalchemys is not None:
        if sqlalchemys.engine.dialect.name != "postgresql":
            raise TypeError(f"on() takes a connection to Postgres, not to {sqlalchemys.engine.dialect.name}")
        return AsyncOnSqlalchemy(sqlalchemys)
    raise TypeError(
        f"on() takes a psycopg.AsyncConnection or a sqlalchemy.ext.asyncio.AsyncConnection, not {type(connection)!r}"
        " (of an ORM session, await its connection())"
    )


def _as_sqlalchemys(connection: object) -> AsyncSqlalchemyConnection | None:
    try:
        # SQLAlchemy's asyncio needs greenlet, which whoever has such a connection has installed.
        from sqlalchemy.ext.asyncio import AsyncConnection as Theirs  # noqa: PLC0415
    except ImportError:
        return None
    return connection if isinstance(connection, Theirs) else None
