"""resolve_effect: the way out of unverified, with evidence and an audit row, for the user and for its operators."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.calls import (
    EVIDENCE,
    SHORT,
    begin,
    call,
    finish,
    interrupt,
    resolve,
    settle,
    take_over,
    wait_until_over,
)
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored


@pytest.fixture
def effect(db: Rented, run: UUID) -> UUID:
    """An effect of which nobody knows the outcome."""
    with db.as_app() as app:
        found = begin(app, run, intent="refund:7")["effect_uid"]
        interrupt(app, run)
    assert isinstance(found, UUID)
    return found


@pytest.mark.parametrize("who", ["app", "operator"])
@pytest.mark.parametrize(("status", "result"), [("succeeded", {"id": "re_7"}), ("succeeded", None), ("failed", None)])
def test_an_unverified_effect_is_resolved_with_evidence(
    db: Rented, effect: UUID, who: str, status: str, result: Any
) -> None:
    evidence = {**EVIDENCE, "who": "Ada", "ticket": [7, "\0"]}
    with db.as_app() if who == "app" else db.as_operator() as connection:
        told = resolve(connection, effect, status, evidence=evidence, result=result)
    assert (told["outcome"], told["status"], told["result"], told["evidence"]) == ("resolved", status, result, evidence)
    (row,) = stored(db, "effects")
    assert (row["status"], row["finished_at"]) == (status, told["finished_at"])


@pytest.mark.parametrize(("who", "acted_by"), [("app", "U1"), ("operator", "on-call")])
def test_it_leaves_an_audit_row(db: Rented, effect: UUID, who: str, acted_by: str) -> None:
    with db.as_app() if who == "app" else db.as_operator() as connection:
        resolve(connection, effect, "failed")
    (row,) = stored(db, "audit_log")
    assert (row["login"], row["acted_by"], row["action"]) == (who, acted_by, "resolve_effect")
    assert (row["subject_kind"], row["subject_uid"], row["reason"]) == ("effect", effect, EVIDENCE["seen"])
    assert row["detail"] == {"status": "failed", "evidence": EVIDENCE, "user_id": "U1"}


def test_it_needs_no_sweeper_when_the_lease_is_over(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        begun = begin(app, run, lease=SHORT)
    wait_until_over(db, begun["lease_expires_at"])
    with db.as_app() as app:
        assert resolve(app, begun["effect_uid"])["outcome"] == "resolved"


@pytest.mark.parametrize("who", ["app", "operator"])
def test_an_effect_in_flight_is_left_to_its_worker(db: Rented, run: UUID, who: str) -> None:
    with db.as_app() as app:
        effect = begin(app, run)["effect_uid"]
    connected = db.as_app() if who == "app" else db.as_operator()
    with nothing_written(db), refused("55W09", match="in flight") as refusal, connected as connection:
        resolve(connection, effect)
    assert str(refusal.diag.message_detail).startswith(f"attempt 1 of run {run} has it until ")


def test_an_equal_repeat_is_harmless_and_leaves_no_second_audit_row(db: Rented, effect: UUID) -> None:
    with db.as_app() as app:
        first = resolve(app, effect, result={"id": 7})
    with nothing_written(db), db.as_operator() as operator:
        again = resolve(operator, effect, evidence=dict(reversed(EVIDENCE.items())), result={"id": 7})
    assert again == {**first, "outcome": "already_resolved"}


@pytest.mark.parametrize(
    ("status", "more"),
    [
        ("failed", {}),
        ("succeeded", {"result": {"id": 8}}),
        ("succeeded", {"result": None}),
        ("succeeded", {"evidence": {**EVIDENCE, "seen": "something else"}}),
    ],
)
@pytest.mark.parametrize("how", ["resolved", "finished"])
def test_a_recorded_outcome_stays(db: Rented, effect: UUID, how: str, status: str, more: dict[str, Any]) -> None:
    with db.as_app() as app:
        (resolve if how == "resolved" else finish)(app, effect, "succeeded", result={"id": 7})
    with nothing_written(db), refused("23W02", match="already"), db.as_operator() as operator:
        resolve(operator, effect, status, **{**({"result": {"id": 7}} if status == "succeeded" else {}), **more})


@pytest.mark.parametrize(
    "evidence",
    [None, {}, {"channel": "x"}, {"seen": "x"}, {"channel": "", "seen": "x"}, {"channel": "x", "seen": "  "},
     {"channel": 1, "seen": "x"}, {"channel": "x", "seen": None}, {"channel": ["x"], "seen": "x"}],
)  # fmt: skip
def test_nobody_resolves_without_saying_how_they_know(db: Rented, effect: UUID, evidence: Any) -> None:
    with nothing_written(db), refused("22W03", match="evidence does not say") as refusal, db.as_app() as app:
        resolve(app, effect, evidence=evidence)
    assert refusal.diag.column_name == "evidence"


@pytest.mark.parametrize("evidence", ["[]", '"seen on the dashboard"', "7", "null"])
def test_evidence_is_an_object(db: Rented, effect: UUID, evidence: str) -> None:
    with nothing_written(db), refused("22W03", match="evidence"), db.as_app() as app:
        resolve(app, effect, evidence=evidence)


@pytest.mark.parametrize("blank", ["\n", "\t", "\u00a0"])
def test_evidence_of_white_space_says_nothing(db: Rented, effect: UUID, blank: str) -> None:
    with nothing_written(db), refused("22W03", match="evidence does not say"), db.as_app() as app:
        resolve(app, effect, evidence={"channel": "dashboard", "seen": blank})


def test_evidence_that_begins_with_white_space_is_taken(db: Rented, effect: UUID) -> None:
    with db.as_app() as app:
        assert resolve(app, effect, evidence={"channel": "x", "seen": " " * 2000 + "seen"})["outcome"] == "resolved"


@pytest.mark.parametrize("status", ["unverified", "begun", "resolved", None])
def test_it_is_resolved_as_succeeded_or_failed(db: Rented, effect: UUID, status: str | None) -> None:
    with nothing_written(db), refused("22W03", match="no outcome to record"), db.as_app() as app:
        resolve(app, effect, status)


def test_what_failed_has_no_result(db: Rented, effect: UUID) -> None:
    with nothing_written(db), refused("22W03", match="a result goes with no outcome failed"), db.as_app() as app:
        resolve(app, effect, "failed", result={"id": 7})


@pytest.mark.parametrize(("tenant", "user"), [("T1", "U2"), ("T2", "U1")])
def test_a_foreign_effect_is_as_absent_as_none(db: Rented, effect: UUID, tenant: str, user: str) -> None:
    with nothing_written(db), refused("42W07"), db.as_app(tenant, user) as app:
        resolve(app, effect)
    with nothing_written(db), refused("42W07"), db.as_operator("T2") as operator:
        resolve(operator, effect)
    with nothing_written(db), refused("42W07"), db.as_app() as app:
        resolve(app, uuid4())
    with nothing_written(db), refused("22W03", match="effect_uid is missing"), db.as_operator() as operator:
        call(operator, "resolve_effect", status="failed", evidence=EVIDENCE)


def test_an_effect_of_the_tenant_is_not_resolved_by_users_who_only_see_it(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        effect = begin(app, run, intent="i", scope="tenant")["effect_uid"]
        interrupt(app, run)
    with nothing_written(db), refused("42W07"), db.as_app("T1", "U2") as app:
        resolve(app, effect)
    with db.as_app() as app:
        assert resolve(app, effect)["outcome"] == "resolved"


def test_once_resolved_as_succeeded_it_is_the_answer_to_the_next_attempt(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        effect = begin(app, run)["effect_uid"]
        attempt = take_over(app, session, run)
        assert begin(app, run, attempt)["outcome"] == "unverified"
        resolve(app, effect, result={"id": 7})
        told = begin(app, run, attempt)
    assert (told["effect_uid"], told["outcome"], told["result"]) == (effect, "recorded", {"id": 7})


def test_once_resolved_as_failed_it_is_begun_again_as_a_row_of_its_own(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        first = begin(app, run)
        attempt = take_over(app, session, run)
        resolve(app, first["effect_uid"], "failed")
        again = begin(app, run, attempt)
    assert (again["outcome"], again["failures"]) == ("execute", 1)
    assert again["effect_uid"] != first["effect_uid"]
    assert again["idempotency_key"] != first["idempotency_key"]


def test_it_is_resolved_after_its_run_is_settled(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        effect = begin(app, run)["effect_uid"]
        finish(app, effect, "unverified")
        settle(app, run, status="failed")
        assert resolve(app, effect)["outcome"] == "resolved"


@pytest.mark.parametrize("login", ["maintainer", "auditor"])
def test_nobody_else_may_resolve(db: Rented, effect: UUID, login: str) -> None:
    connected = db.as_maintainer() if login == "maintainer" else db.as_auditor()
    with nothing_written(db), refused("42501"), connected as connection:
        resolve(connection, effect)
