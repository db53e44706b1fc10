"""Tests of this room share a database a module, each with tenants of its own, and take every way to it."""

import pytest

from tests.client.fix_client import durable, me
from tests.client.fix_client_async import durable_async, me_async
from tests.support.harness import Database
from tests.support.rented import Rented

__all__ = ["db", "durable", "durable_async", "me", "me_async"]


@pytest.fixture
def db(module_db: Database) -> Rented:
    return Rented.of(module_db)
