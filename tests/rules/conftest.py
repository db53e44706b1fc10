"""Fixtures of this room: a template that already holds the world, so that no test has to wait for it."""

from collections.abc import Iterator

import pytest
from pytest_postgresql.executors import NoopExecutor

from tests.rules.world import World
from tests.support.harness import Database
from tests.support.servers import Server


@pytest.fixture(scope="session")
def furnished(server: Server, migrated_template: NoopExecutor) -> Iterator[Database]:
    template = Database(server, migrated_template.template_dbname).clone()
    World.of(template)
    yield template
    template.drop()


@pytest.fixture
def db(furnished: Database) -> Iterator[Database]:
    """A migrated database of this test's own, with the world in it."""
    database = furnished.clone()
    yield database
    database.drop()
