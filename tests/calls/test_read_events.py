"""read_events: which events, always in order of seq."""

from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from tests.support.calls import append, events, open_session
from tests.support.harness import refused
from tests.support.rented import Rented

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
# The minute each event says it happened: not in order, and twice the same.
MINUTES = (5, 1, 3, 3, 9)


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        session = open_session(app)
        for minute in MINUTES:
            append(app, session, occurred_at=START + timedelta(minutes=minute))
    return session


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


@pytest.mark.parametrize(
    ("asked", "seqs"),
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"after_seq": 0}, [1, 2, 3, 4, 5]),
        ({"after_seq": -5}, [1, 2, 3, 4, 5]),
        ({"after_seq": 3}, [4, 5]),
        ({"after_seq": 5}, []),
        ({"after_seq": 99}, []),
        ({"latest": 0}, []),
        ({"latest": 1}, [5]),
        ({"latest": 3}, [3, 4, 5]),
        ({"latest": 99}, [1, 2, 3, 4, 5]),
        ({"after_time": minute(3)}, [1, 3, 4, 5]),
        ({"after_time": minute(4)}, [1, 5]),
        ({"after_time": minute(10)}, []),
        ({"after_time": "-infinity"}, [1, 2, 3, 4, 5]),
        ({"after_time": "infinity"}, []),
        ({"after_seq": 1, "latest": 2}, [4, 5]),
        ({"after_seq": 4, "latest": 2}, [5]),
        ({"after_time": minute(3), "latest": 3}, [3, 4, 5]),
        ({"after_time": minute(5), "latest": 2}, [1, 5]),
        ({"after_seq": 1, "after_time": minute(3), "latest": 2}, [4, 5]),
    ],
)
def test_the_events_asked_for_are_read_in_order_of_seq(
    db: Rented, session: UUID, asked: dict[str, Any], seqs: list[int]
) -> None:
    with db.as_app() as app:
        assert [event["seq"] for event in events(app, session, **asked)] == seqs


def test_fewer_than_none_is_refused(db: Rented, session: UUID) -> None:
    with refused("22W03", match="latest is -1"), db.as_app() as app:
        events(app, session, latest=-1)


def test_a_session_without_events_has_none(db: Rented) -> None:
    with db.as_app() as app:
        assert events(app, open_session(app, "empty")) == []


def test_an_operator_of_the_tenant_and_an_auditor_read_the_same(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        own = events(app, session)
    with db.as_operator() as operator:
        assert events(operator, session) == own
    with db.as_auditor() as auditor:
        assert events(auditor, session) == own
    with refused("42W04"), db.as_operator("T2") as operator:
        events(operator, session)
