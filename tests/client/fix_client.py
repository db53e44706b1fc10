# Generated from fix_client_async.py by tools/async_to_sync.py: change that.
"""The client by every way, and the view of one user."""

from collections.abc import Iterator

import pytest
from psycopg_pool import ConnectionPool

from durable_pg import Durable, Identity
from tests.client.ways import POOLS, address
from tests.support.rented import Rented


@pytest.fixture
def durable(db: Rented, request: pytest.FixtureRequest) -> Iterator[Durable]:
    """The client by a URL, or by whichever way a test names: see every_way."""
    way = getattr(request, "param", "url")
    with address(db, way) as url:
        if way not in POOLS:
            with Durable.from_url(url) as durable:
                yield durable
            return
        with ConnectionPool(url, min_size=1, open=False, kwargs=POOLS[way]) as pool:
            yield Durable(pool)


@pytest.fixture
def me(db: Rented, durable: Durable) -> Identity:
    """User U1 of a tenant of this test's own."""
    return durable.act_as(db.tenant("T1"), "U1")
