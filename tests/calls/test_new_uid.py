"""new_uid: uids are version 7, ordered by time, and never the same."""

from datetime import datetime, timedelta, timezone
from uuid import UUID

from tests.support.harness import value
from tests.support.rented import Rented

MANY = "select array(select durable.new_uid() from generate_series(1, 10000))"


def uids(db: Rented) -> list[UUID]:
    with db.as_engine() as engine:
        found: list[UUID] = value(engine, MANY)
    return found


def test_uids_are_rfc_9562_version_7_and_all_different(db: Rented) -> None:
    made = uids(db)
    assert len(set(made)) == 10_000
    assert {uid.version for uid in made} == {7}
    assert {uid.variant for uid in made} == {made[0].variant}


def test_uids_carry_the_database_clock_in_milliseconds(db: Rented) -> None:
    now = datetime.now(timezone.utc)
    for uid in uids(db)[::1000]:
        made_at = datetime.fromtimestamp((uid.int >> 80) / 1000, tz=timezone.utc)
        assert abs(made_at - now) < timedelta(minutes=5)


def test_a_later_uid_never_has_an_earlier_millisecond(db: Rented) -> None:
    milliseconds = [uid.int >> 80 for uid in uids(db)]
    assert milliseconds == sorted(milliseconds)


def test_the_app_needs_none(db: Rented) -> None:
    with db.as_app() as app:
        assert value(app, "select has_function_privilege('durable.new_uid()', 'execute')") is False
