"""Rule resume-not-rewritten: on resume a call that differs from an unmatched one of an earlier attempt is diverged."""

from typing import Any
from uuid import UUID

import pytest
from psycopg.rows import DictRow

from tests.rules.world import World, effect_of, unchanged
from tests.support.calls import call
from tests.support.harness import Database, rows

MAIL: dict[str, Any] = {"step": 3, "tool": "mail", "args": '{"to": "ada", "text": "We refund you."}'}
BOOK: dict[str, Any] = {"step": 4, "tool": "book", "args": '{"room": 7}'}
# What a model makes of the mail when it is asked again.
REWRITTEN: dict[str, dict[str, Any]] = {
    "arguments": {**MAIL, "args": '{"to": "bob", "text": "We refund you."}'},
    "wording": {**MAIL, "args": '{"to": "ada", "text": "You will get a refund."}'},
    "another tool": {**MAIL, "tool": "letter"},
    "another place": {**MAIL, "ordinal": 1},
    "a later step": {**MAIL, "step": 4},
    "order": BOOK,
    "skipped steps": {**BOOK, "step": 9},
    "no arguments": {**MAIL, "args": None},
}


class Attempts:
    """A run of its own, whose attempts follow each other."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.session = World.of(db).mine.session
        self.number = 0
        self.run: UUID
        self.next()

    def next(self) -> None:
        """Give the run back, if it is held, and take it up."""
        with self.db.as_app() as app:
            if self.number:
                call(app, "interrupt_run", run_uid=self.run, attempt=self.number)
            taken = call(app, "start_run", session_uid=self.session, invocation_id="inv-3", lease="1 day")
        self.run, self.number = taken["run_uid"], taken["attempt"]

    def begin(self, key: dict[str, Any]) -> DictRow:
        with self.db.as_app() as app:
            return call(app, "begin_effect", run_uid=self.run, attempt=self.number, **key)

    def do(self, key: dict[str, Any], status: str = "succeeded") -> UUID:
        """Execute a call, and finish it unless it is to stay begun."""
        begun = self.begin(key)
        assert begun["outcome"] == "execute"
        if status != "begun":
            with self.db.as_app() as app:
                done = {"effect_uid": begun["effect_uid"], "attempt": self.number, "status": status}
                call(app, "finish_effect", **done)
        effect: UUID = begun["effect_uid"]
        return effect

    def save(self, step: int) -> None:
        with self.db.as_app() as app:
            call(app, "save_checkpoint", run_uid=self.run, attempt=self.number, step=step, state="{}")


@pytest.mark.parametrize("rewritten", sorted(REWRITTEN))
@pytest.mark.parametrize("status", ["succeeded", "begun", "unverified"])
def test_a_rewritten_call_is_diverged_and_never_executed(db: Database, status: str, rewritten: str) -> None:
    attempts = Attempts(db)
    mail = attempts.do(MAIL, status)
    attempts.next()
    with unchanged(db):
        told = attempts.begin(REWRITTEN[rewritten])
    assert (told["outcome"], told["effect_uid"], told["attempt"]) == ("diverged", mail, None)
    assert (told["tool"], told["args"]) == ("mail", {"to": "ada", "text": "We refund you."})


def test_asking_again_and_again_executes_nothing(db: Database) -> None:
    attempts = Attempts(db)
    attempts.do(MAIL)
    attempts.next()
    with unchanged(db):
        assert {attempts.begin(REWRITTEN["wording"])["outcome"] for _ in range(3)} == {"diverged"}


@pytest.mark.parametrize("failed_attempts", [0, 1])
def test_a_third_attempt_answers_for_the_first(db: Database, failed_attempts: int) -> None:
    """Also when the second one asked for it: each attempt starts from what it has asked for itself, nothing."""
    attempts = Attempts(db)
    mail = attempts.do(MAIL)
    attempts.next()
    if failed_attempts:
        assert attempts.begin(REWRITTEN["wording"])["outcome"] == "diverged"
    else:
        assert attempts.begin(MAIL)["outcome"] == "recorded"
    attempts.next()
    with unchanged(db):
        told = attempts.begin(REWRITTEN["wording"])
    assert (attempts.number, told["outcome"], told["effect_uid"]) == (3, "diverged", mail)


def test_what_an_earlier_attempt_did_is_answered_then_the_turn_goes_on(db: Database) -> None:
    attempts = Attempts(db)
    mail = attempts.do(MAIL)
    attempts.next()
    again = attempts.begin(MAIL)
    assert (again["outcome"], again["effect_uid"]) == ("recorded", mail)
    assert attempts.begin(BOOK)["outcome"] == "execute"


def test_every_earlier_call_has_to_be_asked_for(db: Database) -> None:
    attempts = Attempts(db)
    attempts.do(MAIL)
    second = attempts.do({**MAIL, "ordinal": 1})
    attempts.next()
    assert attempts.begin(MAIL)["outcome"] == "recorded"
    told = attempts.begin(REWRITTEN["wording"])
    assert (told["outcome"], told["effect_uid"]) == ("diverged", second)


def test_the_earliest_call_is_the_one_that_is_told(db: Database) -> None:
    attempts = Attempts(db)
    mail = attempts.do(MAIL)
    attempts.do(BOOK)
    attempts.next()
    assert attempts.begin({**BOOK, "args": "{}"})["effect_uid"] == mail


def test_a_call_that_certainly_failed_may_be_rewritten(db: Database) -> None:
    attempts = Attempts(db)
    attempts.do(MAIL, "failed")
    attempts.next()
    assert attempts.begin(REWRITTEN["wording"])["outcome"] == "execute"


def test_a_call_that_somebody_found_not_to_have_happened_may_be_rewritten(db: Database) -> None:
    attempts = Attempts(db)
    mail = attempts.do(MAIL, "begun")
    attempts.next()
    assert attempts.begin(MAIL)["outcome"] == "unverified"
    with db.as_operator() as operator:
        seen = '{"channel": "outbox", "seen": "no such mail"}'
        call(operator, "resolve_effect", effect_uid=mail, status="failed", evidence=seen)
    attempts.next()
    assert attempts.begin(REWRITTEN["wording"])["outcome"] == "execute"


def test_what_lies_before_the_last_checkpoint_is_done_with(db: Database) -> None:
    attempts = Attempts(db)
    attempts.do({**MAIL, "step": 1})
    attempts.save(1)
    attempts.next()
    assert attempts.begin({**BOOK, "step": 2})["outcome"] == "execute"


def test_what_lies_after_the_last_checkpoint_is_not(db: Database) -> None:
    attempts = Attempts(db)
    attempts.do({**MAIL, "step": 1})
    attempts.save(1)
    book = attempts.do({**BOOK, "step": 2})
    attempts.next()
    told = attempts.begin({**BOOK, "step": 2, "args": "{}"})
    assert (told["outcome"], told["effect_uid"]) == ("diverged", book)


def test_whoever_goes_back_before_the_checkpoint_answers_for_it(db: Database) -> None:
    attempts = Attempts(db)
    mail = attempts.do({**MAIL, "step": 1})
    attempts.save(1)
    attempts.next()
    told = attempts.begin({**MAIL, "step": 1, "args": "{}"})
    assert (told["outcome"], told["effect_uid"]) == ("diverged", mail)


def test_a_checkpoint_of_the_resumed_attempt_ends_the_comparison(db: Database) -> None:
    attempts = Attempts(db)
    attempts.do({**MAIL, "step": 1})
    attempts.next()
    assert attempts.begin({**MAIL, "step": 1})["outcome"] == "recorded"
    attempts.save(1)
    attempts.next()
    assert attempts.begin({**BOOK, "step": 2})["outcome"] == "execute"


def test_a_checkpoint_covers_nothing_that_its_attempt_has_not_asked_for(db: Database) -> None:
    attempts = Attempts(db)
    attempts.do({**MAIL, "step": 1})
    attempts.next()
    attempts.save(1)
    assert attempts.begin({**BOOK, "step": 2})["outcome"] == "diverged"


def test_an_intent_survives_rewriting(db: Database) -> None:
    """Its key does not come from what a model words anew: it is never diverged, and never executed twice."""
    attempts = Attempts(db)
    mail = attempts.do({**MAIL, "intent": "mail:ada"})
    attempts.next()
    told = attempts.begin({**REWRITTEN["wording"], "intent": "mail:ada", "args_may_differ": True})
    assert (told["outcome"], told["effect_uid"], told["args_match"]) == ("recorded", mail, False)
    assert attempts.begin(BOOK)["outcome"] == "execute"


def test_a_first_attempt_may_do_what_it_likes(db: Database) -> None:
    attempts = Attempts(db)
    attempts.do(MAIL)
    assert attempts.begin(REWRITTEN["wording"])["outcome"] == "execute"


def test_what_was_told_to_be_diverged_is_not_recorded_as_asked_for(db: Database) -> None:
    attempts = Attempts(db)
    mail = attempts.do(MAIL)
    attempts.next()
    attempts.begin(REWRITTEN["wording"])
    asked = [(row["attempt"], row["effect_uid"]) for row in rows(db, "effect_calls") if row["run_uid"] == attempts.run]
    assert asked == [(1, mail)]
    assert effect_of(db, mail)["held_by"] == attempts.run


def test_a_call_that_was_made_at_a_later_step_is_not_made_again_at_an_earlier_one(db: Database) -> None:
    """The first attempt passed step 3 without it: a call there now is the model's plan in another order."""
    attempts = Attempts(db)
    attempts.do({**MAIL, "step": 4})
    attempts.next()
    assert attempts.begin({**REWRITTEN["wording"], "step": 3})["outcome"] == "diverged"
