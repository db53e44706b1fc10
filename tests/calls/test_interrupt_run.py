"""interrupt_run gives a run back: the next attempt goes on, and nobody knows what was under way."""

from uuid import UUID

import pytest

from tests.support.calls import ask_for, begin, expire, finish, interrupt, open_session, start
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


@pytest.fixture
def run(db: Rented, session: UUID) -> UUID:
    with db.as_app() as app:
        return start(app, session, worker="w-0")


def test_interrupting_again_is_harmless(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        first = interrupt(app, run, error={"n": 1})
    before = stored(db, "runs")
    with db.as_app() as app:
        assert interrupt(app, run, error={"n": 2}) == {**first, "outcome": "already_interrupted"}
    assert stored(db, "runs") == before


def test_what_the_attempt_has_begun_becomes_unverified_at_once(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        begin(app, run, step=1, lease="1 day")
        done = begin(app, run, step=2)["effect_uid"]
        finish(app, done)
        other = begin(app, start(app, open_session(app, "s2")), step=3)["effect_uid"]
        interrupt(app, run)
        attempt = ask_for(app, session)["attempt"]
        assert begin(app, run, attempt, step=1)["outcome"] == "unverified"
    statuses = {row["step"]: row["status"] for row in stored(db, "effects")}
    assert statuses == {1: "unverified", 2: "succeeded", 3: "begun"}
    assert other is not None


def test_a_run_whose_lease_is_over_can_not_be_given_back(db: Rented, session: UUID) -> None:
    run = expire(db, session)
    with nothing_written(db), refused("55W04", match="lease ran out"), db.as_app() as app:
        interrupt(app, run)
