"""provider_dedupes_for: while the provider still knows the key, an effect nobody knows of is asked again under it."""

from typing import Any
from uuid import UUID

import pytest

from tests.support.calls import (
    ARGS,
    SHORT,
    begin,
    finish,
    interrupt,
    open_session,
    resolve,
    start,
    take_over,
    wait_until_over,
)
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored

DEDUPES: dict[str, Any] = {"provider_dedupes_for": "1 hour"}


def test_it_is_executed_again_with_the_same_key_by_the_next_attempt(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        first = begin(app, run, **DEDUPES)
        again = begin(app, run, take_over(app, session, run), **DEDUPES)
    assert (again["outcome"], again["status"], again["attempt"]) == ("execute", "begun", 2)
    assert (again["effect_uid"], again["idempotency_key"]) == (first["effect_uid"], first["idempotency_key"])
    (row,) = stored(db, "effects")
    assert (row["attempt"], row["failures"], row["begun_at"] > row["first_begun_at"]) == (2, 0, True)


def test_it_is_executed_again_with_the_same_key_by_another_run(db: Rented, run: UUID, other_run: UUID) -> None:
    with db.as_app() as app:
        first = begin(app, run, intent="i", **DEDUPES)
        interrupt(app, run)
        again = begin(app, other_run, intent="i", **DEDUPES)
    assert (again["outcome"], again["effect_uid"]) == ("execute", first["effect_uid"])
    assert again["idempotency_key"] == first["idempotency_key"]
    (row,) = stored(db, "effects")
    assert (row["run_uid"], row["held_by"]) == (run, other_run)


def test_it_is_executed_again_by_the_same_attempt_whose_own_call_ran_out(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        first = begin(app, run, lease=SHORT, **DEDUPES)
    wait_until_over(db, first["lease_expires_at"])
    with db.as_app() as app:
        again = begin(app, run, **DEDUPES)
    assert (again["outcome"], again["idempotency_key"]) == ("execute", first["idempotency_key"])


def test_an_effect_of_the_tenant_is_executed_again_by_another_user(db: Rented, run: UUID) -> None:
    key = {"intent": "i", "scope": "tenant", **DEDUPES}
    with db.as_app() as app:
        first = begin(app, run, **key)
        interrupt(app, run)
    with db.as_app("T1", "U2") as app:
        again = begin(app, start(app, open_session(app)), **key)
        assert (again["outcome"], again["idempotency_key"]) == ("execute", first["idempotency_key"])
        assert finish(app, first["effect_uid"], run_uid=again["run_uid"])["outcome"] == "finished"


def test_an_effect_of_the_tenant_is_resolved_by_the_user_who_has_it_now(db: Rented, run: UUID) -> None:
    key = {"intent": "i", "scope": "tenant", **DEDUPES}
    with db.as_app() as app:
        effect = begin(app, run, **key)["effect_uid"]
        interrupt(app, run)
    with db.as_app("T1", "U2") as app:
        again = begin(app, start(app, open_session(app)), **key)
        finish(app, effect, "unverified", run_uid=again["run_uid"])
    with db.as_app("T1", "U2") as app:
        assert resolve(app, effect)["outcome"] == "resolved"


def test_while_it_is_in_flight_it_is_executed_by_nobody_else(db: Rented, run: UUID, other_run: UUID) -> None:
    with db.as_app() as app:
        begin(app, run, intent="i", **DEDUPES)
        assert begin(app, other_run, intent="i", **DEDUPES)["outcome"] == "in_flight"


def test_once_the_time_is_over_it_is_not(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        first = begin(app, run, lease="100 milliseconds", provider_dedupes_for=SHORT)
        attempt = take_over(app, session, run)
    (row,) = stored(db, "effects")
    wait_until_over(db, row["first_begun_at"] + row["provider_dedupes_for"])
    before = stored(db, "effects")
    with db.as_app() as app:
        told = begin(app, run, attempt, provider_dedupes_for=SHORT)
    assert stored(db, "effects") == before
    assert (told["outcome"], told["effect_uid"]) == ("unverified", first["effect_uid"])


def test_the_time_counts_from_the_first_begin_not_from_the_last(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        first = begin(app, run, lease="100 milliseconds", provider_dedupes_for="400 milliseconds")
    (row,) = stored(db, "effects")
    wait_until_over(db, first["lease_expires_at"])
    with db.as_app() as app:
        second = begin(app, run, lease="100 milliseconds", provider_dedupes_for="400 milliseconds")
    # On a slow machine the time may be over by now: then it was not begun again, which is right too.
    assert second["outcome"] in {"execute", "unverified"}
    wait_until_over(db, row["first_begun_at"] + row["provider_dedupes_for"])
    wait_until_over(db, second["lease_expires_at"])
    with db.as_app() as app:
        assert begin(app, run, provider_dedupes_for="400 milliseconds")["outcome"] == "unverified"


def test_only_the_word_of_the_first_begin_counts(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        begin(app, run)
        told = begin(app, run, take_over(app, session, run), **DEDUPES)
    assert told["outcome"] == "unverified"
    assert stored(db, "effects")[0]["provider_dedupes_for"] is None


def test_with_other_arguments_it_is_not_executed_again(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        begin(app, run, intent="i", args_may_differ=True, **DEDUPES)
        attempt = take_over(app, session, run)
        told = begin(app, run, attempt, intent="i", args={"order": 8}, args_may_differ=True, **DEDUPES)
        assert (told["outcome"], told["args"], told["args_match"]) == ("unverified", ARGS, False)
        assert begin(app, run, attempt, intent="i", args_may_differ=True, **DEDUPES)["outcome"] == "execute"


@pytest.mark.parametrize("status", ["succeeded", "failed"])
def test_what_is_over_is_not_executed_again_under_its_key(db: Rented, run: UUID, status: str) -> None:
    with db.as_app() as app:
        first = begin(app, run, **DEDUPES)
        finish(app, first["effect_uid"], status)
        again = begin(app, run, **DEDUPES)
    if status == "succeeded":
        assert again["outcome"] == "recorded"
    else:
        assert again["idempotency_key"] != first["idempotency_key"]


def test_the_back_role_can_not_begin_it_again_after_that_time_either(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        begin(app, run, provider_dedupes_for="1 second")
    statement = "update durable.effects set begun_at = first_begun_at + interval '1 second', attempt = 2"
    with nothing_written(db), refused("23514", "effects_begun_again_while_provider_dedupes"), db.as_engine() as engine:
        engine.execute(statement.encode())


def test_a_failure_of_the_second_call_says_nothing_of_the_first(db: Rented, run: UUID, other_run: UUID) -> None:
    """The first may have acted; what is refused now is only the second."""
    with db.as_app() as app:
        effect = begin(app, run, intent="i", **DEDUPES)["effect_uid"]
        finish(app, effect, "unverified")
        begin(app, other_run, intent="i", **DEDUPES)
        told = finish(app, effect, "failed", run_uid=other_run, error='{"card": "refused"}')
        assert (told["outcome"], told["status"], told["error"]) == ("finished", "unverified", {"card": "refused"})
        again = begin(app, run, intent="i", **DEDUPES)
    assert (again["outcome"], again["effect_uid"], again["failures"]) == ("execute", effect, 0)


def test_a_look_from_before_the_last_begin_resolves_nothing(db: Rented, run: UUID, other_run: UUID) -> None:
    with db.as_app() as app:
        effect = begin(app, run, intent="i", **DEDUPES)["effect_uid"]
        finish(app, effect, "unverified")
        looked = begin(app, run, intent="i")
        assert looked["outcome"] == "unverified"
        begin(app, other_run, intent="i", **DEDUPES)
        finish(app, effect, "unverified", run_uid=other_run)
    with nothing_written(db), refused("55W09", match="begun again since"), db.as_app() as app:
        resolve(app, effect, "failed", as_of=looked["begun_at"])
    with db.as_app() as app:
        now = begin(app, run, intent="i")["begun_at"]
        assert resolve(app, effect, "failed", as_of=now)["outcome"] == "resolved"
