# Generated from fix_client_async.py by tools/async_to_sync.py: change that.
"""The client by every way, and the view of one user."""

from collections.abc import Iterator

import pytest
from psycopg_pool import ConnectionPool

from durable_pg import Durable, Identity
from tests.client.ways import POOLS, WAYS, address
from tests.support.rented import Rented


@pytest.fixture(params=WAYS)
def durable(db: Rented, request: pytest.FixtureRequest) -> Iterator[Durable]:
    """The client over each of its ways to the database."""
    with address(db, request.param) as url:
        if request.param not in POOLS:
            with Durable.from_url(url) as durable:
                yield durable
            return
        with ConnectionPool(url, min_size=1, open=False, kwargs=POOLS[request.param]) as pool:
            yield Durable(pool)


@pytest.fixture
def me(db: Rented, durable: Durable) -> Identity:
    """User U1 of a tenant of this test's own."""
    return durable.act_as(db.tenant("T1"), "U1")
