"""Tests of this room share a database a module, each with tenants of its own."""

import pytest

from tests.support.harness import Database
from tests.support.rented import Rented


@pytest.fixture
def db(module_db: Database) -> Rented:
    return Rented.of(module_db)
