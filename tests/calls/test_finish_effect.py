"""finish_effect: the attempt that began an effect last says how it ended, once, however late."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.calls import (
    ARGS,
    SHORT,
    begin,
    call,
    finish,
    interrupt,
    open_session,
    refund,
    resolve,
    settle,
    start,
    take_over,
    wait_until_over,
)
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored

OUTCOMES: list[tuple[str, dict[str, Any]]] = [
    ("succeeded", {"result": {"id": "re_7"}}),
    ("failed", {"error": {"declined": True}}),
    ("unverified", {"error": {"timeout": 30}}),
]


@pytest.fixture
def effect(db: Rented, run: UUID) -> UUID:
    with db.as_app() as app:
        found = begin(app, run, intent="refund:7")["effect_uid"]
    assert isinstance(found, UUID)
    return found


@pytest.mark.parametrize(("status", "said"), OUTCOMES)
def test_an_outcome_is_recorded(db: Rented, run: UUID, effect: UUID, status: str, said: dict[str, Any]) -> None:
    with db.as_app() as app:
        told = finish(app, effect, status, **said)
    (row,) = stored(db, "effects")
    assert told == {
        "effect_uid": effect,
        "run_uid": run,
        "user_id": "U1",
        "app_name": "support",
        "step": 0,
        "ordinal": 0,
        "tool": "refund",
        "scope": "user",
        "intent": "refund:7",
        "args": ARGS,
        "status": status,
        "attempt": 1,
        "failures": 0,
        "idempotency_key": row["idempotency_key"],
        "lease_expires_at": row["lease_expires_at"],
        "first_begun_at": row["first_begun_at"],
        "begun_at": row["begun_at"],
        "finished_at": row["finished_at"],
        "evidence": None,
        "result": None,
        "error": None,
        **said,
        "outcome": "finished",
    }
    assert (row["status"], row["finished_at"] is None) == (status, status == "unverified")


@pytest.mark.parametrize(("status", "said"), OUTCOMES)
def test_an_equal_repeat_is_harmless(db: Rented, effect: UUID, status: str, said: dict[str, Any]) -> None:
    with db.as_app() as app:
        first = finish(app, effect, status, **said)
    with nothing_written(db), db.as_app() as app:
        assert finish(app, effect, status, **said) == {**first, "outcome": "already_finished"}


@pytest.mark.parametrize(
    ("recorded", "refused_one"),
    [
        (("succeeded", {"result": {"id": 1}}), ("succeeded", {"result": {"id": 2}})),
        (("succeeded", {"result": {"id": 1}}), ("succeeded", {})),
        (("succeeded", {}), ("failed", {})),
        (("succeeded", {}), ("unverified", {})),
        (("failed", {}), ("succeeded", {})),
        (("failed", {}), ("unverified", {})),
        (("failed", {"error": {"n": 1}}), ("failed", {"error": {"n": 2}})),
    ],
)
def test_a_recorded_outcome_stays(
    db: Rented, effect: UUID, recorded: tuple[str, dict[str, Any]], refused_one: tuple[str, dict[str, Any]]
) -> None:
    with db.as_app() as app:
        finish(app, effect, recorded[0], **recorded[1])
    with nothing_written(db), refused("23W02", match="already"), db.as_app() as app:
        finish(app, effect, refused_one[0], **refused_one[1])


@pytest.mark.parametrize("status", ["begun", "recorded", "SUCCEEDED", "", None])
def test_no_other_status_is_an_outcome(db: Rented, effect: UUID, status: str | None) -> None:
    with nothing_written(db), refused("22W03", match="no outcome to record"), db.as_app() as app:
        finish(app, effect, status)


@pytest.mark.parametrize(
    ("status", "said"),
    [("succeeded", {"error": {}}), ("failed", {"result": {}}), ("unverified", {"result": {}})],
)
def test_a_result_is_of_success_and_an_error_of_anything_else(
    db: Rented, effect: UUID, status: str, said: dict[str, Any]
) -> None:
    with nothing_written(db), refused("22W03") as refusal, db.as_app() as app:
        finish(app, effect, status, **said)
    assert refusal.diag.column_name in said


@pytest.mark.parametrize("attempt", [None, 0, 2])
def test_another_attempt_finishes_nothing(db: Rented, effect: UUID, attempt: int | None) -> None:
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        finish(app, effect, attempt=attempt)


@pytest.mark.parametrize(("tenant", "user"), [("T1", "U2"), ("T2", "U1")])
def test_a_foreign_effect_is_as_absent_as_none(db: Rented, effect: UUID, tenant: str, user: str) -> None:
    with nothing_written(db), refused("42W07"), db.as_app(tenant, user) as app:
        finish(app, effect)
    with nothing_written(db), refused("42W07"), db.as_app() as app:
        finish(app, uuid4())
    with nothing_written(db), refused("22W03", match="effect_uid is missing"), db.as_app() as app:
        call(app, "finish_effect", status="succeeded")


def test_an_effect_of_the_tenant_is_finished_by_the_user_who_began_it_only(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        effect = begin(app, run, intent="i", scope="tenant")["effect_uid"]
    with nothing_written(db), refused("42W07"), db.as_app("T1", "U2") as app:
        finish(app, effect)
    with db.as_app() as app:
        assert finish(app, effect)["outcome"] == "finished"


@pytest.mark.parametrize("status", ["succeeded", "failed"])
@pytest.mark.parametrize("meanwhile", ["lease over", "unverified", "interrupted", "taken over", "cancelled", "settled"])
def test_a_late_true_outcome_is_kept_while_nobody_has_begun_it_again(
    db: Rented, *, session: UUID, run: UUID, meanwhile: str, status: str
) -> None:
    with db.as_app() as app:
        begun = begin(app, run, intent="refund:7", lease=SHORT if meanwhile == "lease over" else None)
        effect = begun["effect_uid"]
        if meanwhile == "unverified":
            finish(app, effect, "unverified", error={"timeout": 30})
        elif meanwhile == "interrupted":
            interrupt(app, run)
        elif meanwhile == "taken over":
            assert begin(app, run, take_over(app, session, run), intent="refund:7")["outcome"] == "unverified"
        elif meanwhile == "cancelled":
            call(app, "cancel_run", run_uid=run, reason="called off")
        elif meanwhile == "settled":
            settle(app, run)
    if meanwhile == "lease over":
        wait_until_over(db, begun["lease_expires_at"])
    with db.as_app() as app:
        told = finish(app, effect, status)
    assert (told["outcome"], told["status"], told["error"]) == ("finished", status, None)
    assert stored(db, "effects")[0]["status"] == status


def test_a_late_outcome_is_refused_after_the_next_attempt_has_begun_it_again(
    db: Rented, session: UUID, run: UUID
) -> None:
    with db.as_app() as app:
        effect = begin(app, run, provider_dedupes_for="1 hour")["effect_uid"]
        again = begin(app, run, take_over(app, session, run), provider_dedupes_for="1 hour")
        assert (again["effect_uid"], again["outcome"]) == (effect, "execute")
    for status in ("succeeded", "failed", "unverified"):
        with nothing_written(db), refused("55W04"), db.as_app() as app:
            finish(app, effect, status)
    with db.as_app() as app:
        assert finish(app, effect, attempt=2)["outcome"] == "finished"


def test_a_late_outcome_is_refused_after_another_run_has_begun_it_again(db: Rented, run: UUID, other_run: UUID) -> None:
    key: dict[str, Any] = {"intent": "refund:7", "provider_dedupes_for": "1 hour"}
    with db.as_app() as app:
        effect = begin(app, run, **key)["effect_uid"]
        interrupt(app, run)
        again = begin(app, other_run, **key)
        assert (again["effect_uid"], again["outcome"]) == (effect, "execute")
    # What it believes failed may be what the other run has just been told is done.
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        finish(app, effect, "failed")


@pytest.mark.parametrize("status", ["succeeded", "failed", "unverified"])
def test_after_somebody_looked_another_outcome_is_refused(db: Rented, run: UUID, effect: UUID, status: str) -> None:
    with db.as_app() as app:
        interrupt(app, run)
        resolve(
            app,
            effect,
            "failed" if status == "succeeded" else "succeeded",
            **({} if status == "succeeded" else {"result": {"id": 7}}),
        )
    with nothing_written(db), refused("23W02", match="already") as refusal, db.as_app() as app:
        finish(app, effect, status)
    assert "by somebody who looked" in str(refusal.diag.message_detail)


def test_after_somebody_looked_the_same_outcome_is_harmless(db: Rented, effect: UUID) -> None:
    with db.as_app() as app:
        finish(app, effect, "unverified", error={"timeout": 30})
        resolve(app, effect, result={"id": 7})
    with nothing_written(db), db.as_app() as app:
        assert finish(app, effect, result={"id": 7})["outcome"] == "already_finished"


def test_unverified_for_another_reason_changes_nothing(db: Rented, effect: UUID) -> None:
    with db.as_app() as app:
        finish(app, effect, "unverified", error={"timeout": 30})
    with nothing_written(db), db.as_app() as app:
        told = finish(app, effect, "unverified", error={"connection": "lost"})
    assert (told["outcome"], told["error"]) == ("already_finished", {"timeout": 30})


def test_a_failed_try_says_nothing_about_the_next_one(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        first = refund(app, run, "failed", intent="i")
        second = refund(app, run, intent="i")
    assert first != second
    with nothing_written(db), refused("23W02"), db.as_app() as app:
        finish(app, first)


def test_the_run_of_another_user_may_go_on_while_one_finishes(db: Rented, effect: UUID) -> None:
    with db.as_app() as app, db.as_app("T1", "U2") as other:
        finish(app, effect)
        assert begin(other, start(other, open_session(other)), intent="refund:7")["outcome"] == "execute"
