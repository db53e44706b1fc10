"""Tests of this room share a database a module, each with tenants of its own, and often begin with a run."""

from uuid import UUID

import pytest

from tests.calls.foreign_team import team, team_role
from tests.support.calls import open_session, say, start
from tests.support.harness import Database
from tests.support.rented import Rented

__all__ = ["db", "other_run", "run", "session", "team", "team_role"]


@pytest.fixture
def db(module_db: Database) -> Rented:
    return Rented.of(module_db)


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        session = open_session(app)
        say(app, session)
    return session


@pytest.fixture
def run(db: Rented, session: UUID) -> UUID:
    """The run of that session, held by its first attempt."""
    with db.as_app() as app:
        return start(app, session)


@pytest.fixture
def other_run(db: Rented) -> UUID:
    """A run of the same user in another session, held by its own first attempt."""
    with db.as_app() as app:
        return start(app, open_session(app, "s2"), "inv-2")
