"""max_attempts: the interruption or the death of the last attempt settles a run as failed."""

from uuid import UUID

import pytest

from tests.support.calls import (
    SHORT,
    append,
    ask_for,
    begin,
    interrupt,
    open_session,
    rewind_before,
    say,
    settle,
    wait_until_over,
)
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        session = open_session(app)
        say(app, session)
    return session


def test_the_interruption_of_the_last_attempt_settles_the_run_as_failed(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        for attempt in (1, 2):
            taken = ask_for(app, session, max_attempts=3)
            assert (taken["attempt"], interrupt(app, taken["run_uid"], attempt)["outcome"]) == (attempt, "interrupted")
        last = ask_for(app, session, max_attempts=3)
        effect = begin(app, last["run_uid"], 3)
        told = interrupt(app, last["run_uid"], 3, error={"why": "again"})
    assert effect["outcome"] == "execute"
    assert (told["outcome"], told["status"], told["tools_executed"]) == ("settled", "failed", ["refund"])
    assert told["error"] == {
        "reason": "max_attempts",
        "attempts": 3,
        "max_attempts": 3,
        "interrupted_with": {"why": "again"},
    }
    assert stored(db, "effects")[0]["status"] == "unverified"


def test_the_repeat_of_that_interruption_is_harmless(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        run = ask_for(app, session, max_attempts=1)["run_uid"]
        first = interrupt(app, run, error={"n": 1})
    with nothing_written(db), db.as_app() as app:
        assert interrupt(app, run, error={"n": 1}) == first


def test_the_death_of_the_last_attempt_settles_the_run_for_whoever_asks_next(db: Rented, session: UUID) -> None:
    for attempt in (1, 2):
        with db.as_app() as app:
            taken = ask_for(app, session, lease=SHORT, max_attempts=2)
        assert taken["attempt"] == attempt
        wait_until_over(db, taken["lease_expires_at"])
    with db.as_app() as app:
        told = ask_for(app, session)
    assert (told["outcome"], told["status"]) == ("settled", "failed")
    assert told["error"] == {"reason": "max_attempts", "attempts": 2, "max_attempts": 2, "interrupted_with": None}
    with nothing_written(db), db.as_app() as app:
        assert ask_for(app, session) == told


def test_what_the_last_interruption_said_is_kept_when_a_later_call_gives_the_run_up(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        interrupt(app, ask_for(app, session)["run_uid"], error={"why": "deployed"})
        told = ask_for(app, session, max_attempts=1)
    assert (told["outcome"], told["error"]["interrupted_with"]) == ("settled", {"why": "deployed"})


def test_without_a_limit_there_is_none(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        for attempt in range(1, 8):
            assert interrupt(app, ask_for(app, session)["run_uid"], attempt)["outcome"] == "interrupted"


def test_the_limit_given_last_counts_and_a_call_without_one_keeps_it(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        run = ask_for(app, session, max_attempts=2)["run_uid"]
        interrupt(app, run)
        assert ask_for(app, session)["attempt"] == 2
        assert interrupt(app, run, 2)["outcome"] == "settled"


def test_a_limit_that_grows_lets_it_go_on(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        run = ask_for(app, session, max_attempts=2)["run_uid"]
        interrupt(app, run)
        assert ask_for(app, session, max_attempts=3)["attempt"] == 2
        assert interrupt(app, run, 2)["outcome"] == "interrupted"


def test_a_busy_run_keeps_its_limit(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        ask_for(app, session, max_attempts=2)
    with nothing_written(db), db.as_app() as app:
        assert ask_for(app, session, max_attempts=1)["outcome"] == "busy"


@pytest.mark.parametrize("limit", [0, -1])
def test_one_attempt_at_least_is_allowed(db: Rented, session: UUID, limit: int) -> None:
    with nothing_written(db), refused("22W03", match="max_attempts"), db.as_app() as app:
        ask_for(app, session, max_attempts=limit)


def test_after_a_rewind_the_run_has_all_its_attempts_and_no_number_comes_back(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        interrupt(app, ask_for(app, session, max_attempts=2)["run_uid"])
        second = ask_for(app, session)
        settle(app, second["run_uid"], attempt=2, status="cancelled")
        append(app, session, "user", metadata=rewind_before("inv-1"))
        say(app, session, "again")
        attempts = []
        for _ in range(2):
            taken = ask_for(app, session, max_attempts=2)
            attempts.append(taken["attempt"])
            told = interrupt(app, taken["run_uid"], taken["attempt"])
    assert attempts == [3, 4]
    assert (told["outcome"], told["error"]["attempts"]) == ("settled", 2)
    assert taken["run_uid"] != second["run_uid"]
