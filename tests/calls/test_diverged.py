"""A resumed run whose model rewrote what it wants is told what the run did before, and executes nothing new there."""

from typing import Any
from uuid import UUID

import pytest

from tests.support.calls import (
    ARGS,
    SHORT,
    ask_for,
    begin,
    call,
    finish,
    refund,
    save,
    settle,
    start,
    take_over,
    wait_until_over,
)
from tests.support.rented import Rented, nothing_written, stored

REWRITTEN: list[dict[str, Any]] = [
    {"args": {"order": 7, "cents": 501}},
    {"args": {"order": 7, "cents": 500, "note": "sorry"}},
    {"args": None},
    {"tool": "pay_back"},
    {"ordinal": 1},
    {"step": 2},
]


@pytest.mark.parametrize("rewritten", REWRITTEN)
@pytest.mark.parametrize("status", ["succeeded", "unverified"])
def test_a_rewritten_call_is_answered_with_the_earlier_effect(
    db: Rented, session: UUID, run: UUID, rewritten: dict[str, Any], status: str
) -> None:
    with db.as_app() as app:
        effect = begin(app, run, step=1)["effect_uid"]
        finish(app, effect, status, **({"result": {"id": 7}} if status == "succeeded" else {}))
        attempt = take_over(app, session, run)
    with nothing_written(db), db.as_app() as app:
        told = begin(app, run, attempt, **{"step": 1, **rewritten})
    assert (told["effect_uid"], told["outcome"], told["status"]) == (effect, "diverged", status)
    assert (told["tool"], told["args"], told["attempt"]) == ("refund", ARGS, None)
    assert told["result"] == ({"id": 7} if status == "succeeded" else None)
    assert told["args_match"] is ("args" not in rewritten)


def test_a_begun_one_that_was_left_behind_is_told_as_unverified(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        begin(app, run)
        told = begin(app, run, take_over(app, session, run), args={"order": 8})
    assert (told["outcome"], told["status"]) == ("diverged", "unverified")


def test_asked_for_as_it_was_it_is_recorded_and_the_way_is_free(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        refund(app, run)
        attempt = take_over(app, session, run)
        assert begin(app, run, attempt, step=1, tool="mail")["outcome"] == "diverged"
        assert begin(app, run, attempt)["outcome"] == "recorded"
        assert begin(app, run, attempt, step=1, tool="mail")["outcome"] == "execute"


def test_calls_of_one_step_are_asked_for_in_any_order(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        for tool in ("refund", "mail", "call"):
            refund(app, run, tool=tool)
        attempt = take_over(app, session, run)
        outcomes = [begin(app, run, attempt, tool=tool)["outcome"] for tool in ("call", "refund", "mail", "new")]
    assert outcomes == ["recorded", "recorded", "recorded", "execute"]


def test_the_first_one_left_behind_is_told(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        later = refund(app, run, step=2)
        first = refund(app, run, step=1, ordinal=1)
        attempt = take_over(app, session, run)
        assert begin(app, run, attempt, step=3)["effect_uid"] == first
        begin(app, run, attempt, step=1, ordinal=1)
        assert begin(app, run, attempt, step=3)["effect_uid"] == later


def test_a_call_that_moved_to_an_earlier_step_is_told_the_later_one(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        effect = refund(app, run, step=2)
        attempt = take_over(app, session, run)
        told = begin(app, run, attempt, step=1)
        assert (told["effect_uid"], told["outcome"], told["step"], told["ordinal"]) == (effect, "diverged", 2, 0)
        assert begin(app, run, attempt, step=2)["outcome"] == "recorded"
        assert begin(app, run, attempt, step=1)["outcome"] == "execute"


def test_what_certainly_did_not_happen_does_not_stand_in_the_way(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        refund(app, run, "failed")
        assert begin(app, run, take_over(app, session, run), args={"order": 8})["outcome"] == "execute"


def test_what_lies_before_the_last_checkpoint_does_not_stand_in_the_way(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        refund(app, run, step=1)
        save(app, run, 1)
        attempt = take_over(app, session, run)
        assert begin(app, run, attempt, step=2, args={"order": 8})["outcome"] == "execute"


def test_going_back_before_the_checkpoint_meets_it_again(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        effect = refund(app, run, step=1)
        save(app, run, 1)
        told = begin(app, run, take_over(app, session, run), step=1, args={"order": 8})
    assert (told["outcome"], told["effect_uid"]) == ("diverged", effect)


def test_a_call_under_an_intent_diverges_from_nothing(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        refund(app, run)
        attempt = take_over(app, session, run)
        assert begin(app, run, attempt, intent="mail:7", tool="mail")["outcome"] == "execute"


def test_nothing_diverges_from_a_call_under_an_intent(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        refund(app, run, intent="refund:7")
        assert begin(app, run, take_over(app, session, run), tool="mail")["outcome"] == "execute"


def test_within_one_attempt_nothing_diverges(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        refund(app, run)
        assert begin(app, run, args={"order": 8})["outcome"] == "execute"


def test_each_attempt_has_to_ask_again(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        refund(app, run)
        second = take_over(app, session, run)
        assert begin(app, run, second)["outcome"] == "recorded"
        third = take_over(app, session, run, second)
        assert begin(app, run, third, args={"order": 8})["outcome"] == "diverged"


def test_what_the_second_attempt_did_binds_the_third(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        second = take_over(app, session, run)
        effect = refund(app, run, attempt=second)
        third = take_over(app, session, run, second)
        told = begin(app, run, third, args={"order": 8})
    assert (told["outcome"], told["effect_uid"]) == ("diverged", effect)


def test_another_run_diverges_from_nothing(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        refund(app, run)
        settle(app, run)
        assert begin(app, start(app, session, "inv-2"), args={"order": 8})["outcome"] == "execute"


def test_a_diverged_call_is_not_counted_as_one_of_the_run(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        refund(app, run)
        attempt = take_over(app, session, run)
        begin(app, run, attempt, tool="pay_back")
        assert settle(app, run, attempt=attempt)["tools_executed"] == ["refund"]
    assert len(stored(db, "effect_calls")) == 1


def test_a_run_that_was_reaped_diverges_as_one_that_was_given_back(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        started = ask_for(app, session, lease=SHORT)
        begin(app, started["run_uid"])
    wait_until_over(db, started["lease_expires_at"])
    with db.as_maintainer() as maintainer:
        call(maintainer, "reap_runs")
    with db.as_app() as app:
        attempt = ask_for(app, session)["attempt"]
        assert begin(app, started["run_uid"], attempt, args={"order": 8})["outcome"] == "diverged"


def test_a_checkpoint_of_the_next_attempt_does_not_cover_what_it_has_not_asked_for(
    db: Rented, session: UUID, run: UUID
) -> None:
    """A model that looks something up first would otherwise have paid twice."""
    with db.as_app() as app:
        effect = begin(app, run, step=1)["effect_uid"]
        attempt = take_over(app, session, run)
        save(app, run, 1, attempt=attempt)
        told = begin(app, run, attempt, step=2)
    assert (told["effect_uid"], told["outcome"], told["status"]) == (effect, "diverged", "unverified")


def test_what_an_attempt_had_asked_for_before_its_checkpoint_is_done_with(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        refund(app, run, step=1)
        attempt = take_over(app, session, run)
        assert begin(app, run, attempt, step=1)["outcome"] == "recorded"
        save(app, run, 1, attempt=attempt)
        assert begin(app, run, take_over(app, session, run, attempt), step=2, tool="mail")["outcome"] == "execute"
