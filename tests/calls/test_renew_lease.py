"""renew_lease extends the hold of the attempt that has it, and of the effects that it has begun."""

from datetime import timedelta
from uuid import UUID

import pytest

from tests.support.calls import SHORT, begin, expire, finish, open_session, renew, start, take_over, wait_until_over
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


def test_the_holder_renews_its_lease(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        told = renew(app, run, lease="1 hour")
    (row,) = stored(db, "runs")
    assert (told["outcome"], told["attempt"], told["lease_expires_at"]) == ("renewed", 1, row["lease_expires_at"])
    assert row["lease_expires_at"] - row["started_at"] >= timedelta(hours=1)


def test_with_the_lease_the_effects_that_the_attempt_has_begun_are_renewed(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        begun = begin(app, run, step=1)["effect_uid"]
        long = begin(app, run, step=2, lease="1 day")
        done = begin(app, run, step=3)
        finish(app, done["effect_uid"])
        lost = begin(app, run, step=4, lease=SHORT)
    wait_until_over(db, lost["lease_expires_at"])
    with db.as_app() as app:
        renewed = renew(app, run, lease="1 hour")["lease_expires_at"]
    leases = {row["effect_uid"]: row["lease_expires_at"] for row in stored(db, "effects")}
    assert leases == {
        begun: renewed,
        long["effect_uid"]: long["lease_expires_at"],
        done["effect_uid"]: done["lease_expires_at"],
        lost["effect_uid"]: lost["lease_expires_at"],
    }


def test_effects_of_the_last_attempt_and_of_other_runs_are_not_renewed(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        first = begin(app, run)
        attempt = take_over(app, session, run)
        other = start(app, open_session(app, "s2"))
        second = begin(app, other)
        renew(app, run, attempt, lease="1 hour")
    leases = {row["effect_uid"]: row["lease_expires_at"] for row in stored(db, "effects")}
    assert leases == {effect["effect_uid"]: effect["lease_expires_at"] for effect in (first, second)}


def test_a_lease_that_is_over_is_not_renewed(db: Rented, session: UUID) -> None:
    run = expire(db, session)
    with nothing_written(db), refused("55W04", match="lease ran out"), db.as_app() as app:
        renew(app, run)
