"""A session and its run, held by the first attempt."""

from uuid import UUID

import pytest

from tests.calls import open_session, say, start
from tests.rented import Rented


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        session = open_session(app)
        say(app, session)
    return session


@pytest.fixture
def run(db: Rented, session: UUID) -> UUID:
    with db.as_app() as app:
        return start(app, session)


@pytest.fixture
def other_run(db: Rented) -> UUID:
    """A run of the same user in another session, held by its own first attempt."""
    with db.as_app() as app:
        return start(app, open_session(app, "s2"), "inv-2")
