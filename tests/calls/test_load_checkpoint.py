"""load_checkpoint gives the newest one, as it was saved."""

from uuid import UUID

import pytest

from tests.support.calls import append, load, said, save, settle, take_over
from tests.support.rented import Rented


def test_it_is_told_as_it_is_loaded(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        append(app, session, content=said("done"), invocation_id="inv-1", attempt=1)
        told = save(app, run, 1, state={"n\0": [1]}, schema_version=3)
        assert told == {
            "run_uid": run,
            "step": 1,
            "schema_version": 3,
            "event_seq": 2,
            "attempt": 1,
            "state": {"n\0": [1]},
            "created_at": told["created_at"],
            "outcome": "saved",
        }
        assert load(app, run) == {**told, "outcome": "loaded"}


def test_the_newest_one_is_loaded(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        assert load(app, run) is None
        for step in (1, 2):
            save(app, run, step)
        attempt = take_over(app, session, run)
        save(app, run, 3, attempt, state={"by": "the second"})
        found = load(app, run)
    assert (found["step"], found["attempt"], found["state"]) == (3, 2, {"by": "the second"})


@pytest.mark.parametrize("who", ["user", "operator"])
def test_it_outlasts_its_run(db: Rented, run: UUID, who: str) -> None:
    with db.as_app() as app:
        save(app, run)
        settle(app, run)
    with db.as_app() if who == "user" else db.as_operator() as connection:
        assert load(connection, run)["step"] == 1
