"""The client by every way, and the view of one user."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from psycopg_pool import AsyncConnectionPool

from durable_pg import AsyncDurable, AsyncIdentity
from tests.client.ways import POOLS, address
from tests.support.rented import Rented


@pytest_asyncio.fixture
async def durable_async(db: Rented, request: pytest.FixtureRequest) -> AsyncIterator[AsyncDurable]:
    """The client by a URL, or by whichever way a test names: see every_way."""
    way = getattr(request, "param", "url")
    with address(db, way) as url:
        if way not in POOLS:
            async with AsyncDurable.from_url(url) as durable:
                yield durable
            return
        async with AsyncConnectionPool(url, min_size=1, open=False, kwargs=POOLS[way]) as pool:
            yield AsyncDurable(pool)


@pytest_asyncio.fixture
async def me_async(db: Rented, durable_async: AsyncDurable) -> AsyncIdentity:
    """User U1 of a tenant of this test's own."""
    return durable_async.act_as(db.tenant("T1"), "U1")
