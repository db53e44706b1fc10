"""How a connection gets back to its pool, whatever interrupts its user on the way."""

from __future__ import annotations

import asyncio
from typing import Any

from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool


def hand_back(pool: ConnectionPool[Any], connection: Connection[Any]) -> None:
    pool.putconn(connection)


async def hand_back_async(pool: AsyncConnectionPool[Any], connection: AsyncConnection[Any]) -> None:
    """Cancelled in the middle of it, a pool would count the connection as taken for ever: it is seen through."""
    handing = asyncio.ensure_future(pool.putconn(connection))
    cancelled: asyncio.CancelledError | None = None
    while not handing.done():
        try:
            await asyncio.shield(handing)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    handing.result()
