"""begin_effect says whether a tool may be called; what it can't mean it refuses by the argument's name."""

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
    settle,
    start,
    take_over,
    wait_until_over,
)
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored

RUN_SCOPED: list[dict[str, Any]] = [
    {"step": 1},
    {"ordinal": 1},
    {"tool": "mail"},
    {"args": {"order": 8}},
    {"args": None},
]


def test_a_new_effect_is_to_be_executed(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        begun = begin(app, run, step=2, ordinal=1)
    (row,) = stored(db, "effects")
    assert begun == {
        "effect_uid": row["effect_uid"],
        "run_uid": run,
        "idempotency_key": row["idempotency_key"],
        "outcome": "execute",
        "status": "begun",
        "step": 2,
        "ordinal": 1,
        "tool": "refund",
        "args": ARGS,
        "args_match": True,
        "result": None,
        "error": None,
        "attempt": 1,
        "failures": 0,
        "lease_expires_at": row["lease_expires_at"],
        "begun_at": row["begun_at"],
    }
    assert (row["step"], row["ordinal"], row["scope"], row["intent"], row["held_by"]) == (2, 1, "run", None, run)
    (call_row,) = stored(db, "effect_calls")
    assert (call_row["run_uid"], call_row["attempt"], call_row["effect_uid"]) == (run, 1, row["effect_uid"])


def test_without_a_lease_of_its_own_it_has_the_runs(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        begun = begin(app, run)
    (row,) = stored(db, "runs")
    assert begun["lease_expires_at"] == row["lease_expires_at"]


@pytest.mark.parametrize("key", [{}, {"intent": "refund:7"}, {"intent": "refund:7", "scope": "tenant"}])
def test_asked_again_while_its_worker_is_at_it_it_is_in_flight(db: Rented, run: UUID, key: dict[str, Any]) -> None:
    with db.as_app() as app:
        begun = begin(app, run, **key)
    with nothing_written(db), db.as_app() as app:
        again = begin(app, run, **key)
    assert again == {**begun, "outcome": "in_flight", "attempt": None}


@pytest.mark.parametrize("key", [{}, {"intent": "refund:7"}, {"intent": "refund:7", "scope": "tenant"}])
def test_asked_again_after_it_succeeded_the_result_is_told(db: Rented, run: UUID, key: dict[str, Any]) -> None:
    with db.as_app() as app:
        begun = begin(app, run, **key)
        finish(app, begun["effect_uid"], result={"id": "re_7\0"})
    with nothing_written(db), db.as_app() as app:
        again = begin(app, run, **key)
    told = (again["effect_uid"], again["outcome"], again["status"], again["result"], again["attempt"])
    assert told == (begun["effect_uid"], "recorded", "succeeded", {"id": "re_7\0"}, None)


@pytest.mark.parametrize("key", [{}, {"intent": "refund:7"}])
def test_asked_again_after_nobody_knows_it_is_unverified(db: Rented, run: UUID, key: dict[str, Any]) -> None:
    with db.as_app() as app:
        begun = begin(app, run, **key)
        finish(app, begun["effect_uid"], "unverified", error={"timeout": 30})
    with nothing_written(db), db.as_app() as app:
        again = begin(app, run, **key)
    assert (again["outcome"], again["status"], again["error"]) == ("unverified", "unverified", {"timeout": 30})
    assert again["idempotency_key"] == begun["idempotency_key"]


def test_it_is_unverified_when_its_lease_is_over_and_nobody_swept(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        begun = begin(app, run, lease=SHORT)
    wait_until_over(db, begun["lease_expires_at"])
    with nothing_written(db), db.as_app() as app:
        again = begin(app, run)
    assert (again["effect_uid"], again["outcome"], again["status"]) == (begun["effect_uid"], "unverified", "unverified")
    assert stored(db, "effects")[0]["status"] == "begun"


@pytest.mark.parametrize("key", [{}, {"intent": "refund:7"}, {"intent": "refund:7", "scope": "tenant"}])
def test_a_failed_one_is_begun_again_as_a_row_of_its_own_under_another_key(
    db: Rented, run: UUID, key: dict[str, Any]
) -> None:
    keys = set()
    for failures in range(3):
        with db.as_app() as app:
            begun = begin(app, run, **key)
            finish(app, begun["effect_uid"], "failed", error={"declined": failures})
        assert (begun["outcome"], begun["failures"], begun["error"]) == ("execute", failures, None)
        keys.add(begun["idempotency_key"])
    assert len(keys) == 3
    rows = sorted(stored(db, "effects"), key=lambda row: row["failures"])
    assert [(row["failures"], row["status"], row["error"]) for row in rows] == [
        (failures, "failed", {"declined": failures}) for failures in range(3)
    ]


@pytest.mark.parametrize("other", RUN_SCOPED)
def test_without_an_intent_another_step_tool_argument_or_ordinal_is_another_effect(
    db: Rented, run: UUID, other: dict[str, Any]
) -> None:
    with db.as_app() as app:
        refund(app, run)
        begun = begin(app, run, **other)
    assert (begun["outcome"], len(stored(db, "effects"))) == ("execute", 2)


def test_without_an_intent_another_run_has_an_effect_of_its_own(db: Rented, run: UUID, other_run: UUID) -> None:
    with db.as_app() as app:
        refund(app, run)
        assert begin(app, other_run)["outcome"] == "execute"


def test_without_an_intent_the_next_attempt_is_told_what_the_last_one_did(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        effect = refund(app, run)
        told = begin(app, run, take_over(app, session, run))
    assert (told["effect_uid"], told["outcome"]) == (effect, "recorded")


def test_under_an_intent_other_runs_steps_and_ordinals_are_answered_by_the_one_effect(
    db: Rented, run: UUID, other_run: UUID
) -> None:
    with db.as_app() as app:
        effect = refund(app, run, intent="refund:7")
        told = begin(app, other_run, intent="refund:7", step=3, ordinal=2)
    assert (told["effect_uid"], told["outcome"]) == (effect, "recorded")
    assert {row["run_uid"] for row in stored(db, "effect_calls")} == {run, other_run}


@pytest.mark.parametrize("spelled", ["caf\u00e9", "cafe\u0301"])
def test_an_intent_is_the_same_in_every_spelling_that_unicode_holds_for_the_same(
    db: Rented, run: UUID, spelled: str
) -> None:
    with db.as_app() as app:
        refund(app, run, intent="cafe\u0301")
        assert begin(app, run, intent=spelled)["outcome"] == "recorded"
    assert stored(db, "effects")[0]["intent"] == "caf\u00e9"


@pytest.mark.parametrize(
    ("tenant", "user", "app_name"), [("T1", "U2", "support"), ("T2", "U1", "support"), ("T1", "U1", "sales")]
)
def test_an_intent_of_a_user_is_unknown_to_other_users_tenants_and_apps(
    db: Rented, run: UUID, tenant: str, user: str, app_name: str
) -> None:
    with db.as_app() as app:
        refund(app, run, intent="refund:7")
    with db.as_app(tenant, user) as app:
        other = start(app, open_session(app, "s9", app_name=app_name))
        assert begin(app, other, intent="refund:7", args={"order": 8})["outcome"] == "execute"


def test_an_intent_of_the_tenant_is_one_for_all_its_users(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        effect = refund(app, run, intent="invoice:2026-10", scope="tenant")
    with db.as_app("T1", "U2") as app:
        told = begin(app, start(app, open_session(app)), intent="invoice:2026-10", scope="tenant")
    assert (told["effect_uid"], told["outcome"], told["args"]) == (effect, "recorded", ARGS)
    with db.as_app("T2", "U2") as app:
        other = begin(app, start(app, open_session(app)), intent="invoice:2026-10", scope="tenant")
    assert other["outcome"] == "execute"


def test_an_intent_of_the_user_and_one_of_the_tenant_are_two(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        refund(app, run, intent="i", scope="tenant")
        assert begin(app, run, intent="i", scope="user")["outcome"] == "execute"


@pytest.mark.parametrize(("other", "column"), [({"tool": "mail"}, "tool"), ({"args": {"order": 8}}, "args")])
@pytest.mark.parametrize("status", ["succeeded", "failed", "unverified"])
@pytest.mark.parametrize("scope", ["user", "tenant"])
def test_another_tool_or_other_arguments_under_an_intent_are_refused(
    db: Rented, *, run: UUID, other: dict[str, Any], column: str, status: str, scope: str
) -> None:
    with db.as_app() as app:
        refund(app, run, status, intent="refund:7", scope=scope)
    with nothing_written(db), refused("23W10", match="refund:7") as refusal, db.as_app() as app:
        begin(app, run, intent="refund:7", scope=scope, **other)
    assert (refusal.diag.table_name, refusal.diag.column_name) == ("effects", column)


def test_where_arguments_may_differ_the_recorded_result_is_the_answer(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        effect = begin(app, run, intent="mail:7", args_may_differ=True)["effect_uid"]
        finish(app, effect, result={"sent": True})
    with nothing_written(db), db.as_app() as app:
        told = begin(app, run, intent="mail:7", args={"text": "reworded"}, args_may_differ=True)
    assert (told["outcome"], told["args_match"], told["args"], told["result"]) == (
        *("recorded", False, ARGS),
        {"sent": True},
    )


def test_another_tool_is_refused_even_where_arguments_may_differ(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        refund(app, run, intent="i", args_may_differ=True)
    with nothing_written(db), refused("23W10"), db.as_app() as app:
        begin(app, run, intent="i", tool="mail", args_may_differ=True)


@pytest.mark.parametrize("attempt", [None, 0, 2])
@pytest.mark.parametrize("key", [{}, {"intent": "i"}])
def test_an_attempt_that_does_not_hold_the_run_begins_nothing(
    db: Rented, run: UUID, attempt: int | None, key: dict[str, Any]
) -> None:
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        begin(app, run, attempt, **key)


def test_a_stale_attempt_begins_nothing_and_is_not_told_results(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        refund(app, run)
        take_over(app, session, run)
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        begin(app, run)


def test_an_attempt_whose_lease_is_over_begins_nothing(db: Rented) -> None:
    with db.as_app() as app:
        started = call(app, "start_run", session_uid=open_session(app), invocation_id="inv-1", lease=SHORT)
    wait_until_over(db, started["lease_expires_at"])
    with nothing_written(db), refused("55W04", match="lease ran out"), db.as_app() as app:
        begin(app, started["run_uid"])


@pytest.mark.parametrize("end", ["settled", "cancelled", "interrupted", "closed"])
def test_a_run_that_is_over_begins_nothing(db: Rented, session: UUID, run: UUID, end: str) -> None:
    with db.as_app() as app:
        if end == "settled":
            settle(app, run)
        elif end == "cancelled":
            call(app, "cancel_run", run_uid=run, reason="called off")
        elif end == "interrupted":
            interrupt(app, run)
        else:
            call(app, "close_session", session_uid=session, reason="done")
    sqlstate = {"interrupted": "55W04", "closed": "55W01"}.get(end, "55W03")
    with nothing_written(db), refused(sqlstate), db.as_app() as app:
        begin(app, run)


@pytest.mark.parametrize(("tenant", "user"), [("T1", "U2"), ("T2", "U1")])
def test_a_foreign_run_is_as_absent_as_none(db: Rented, run: UUID, tenant: str, user: str) -> None:
    with nothing_written(db), refused("42W05"), db.as_app(tenant, user) as app:
        begin(app, run)
    with nothing_written(db), refused("42W05"), db.as_app() as app:
        begin(app, uuid4())
    with nothing_written(db), refused("22W03", match="run_uid is missing"), db.as_app() as app:
        call(app, "begin_effect", tool="refund")


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_it_is_not_begun_under_an_older_snapshot(db: Rented, run: UUID, level: str) -> None:
    with nothing_written(db), refused("55W05"), db.connect("app") as app:
        app.execute(f"set transaction isolation level {level}".encode())
        db.act_as(app)
        begin(app, run)


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"step": -1}, "step"),
        ({"step": None}, "step"),
        ({"ordinal": -1}, "ordinal"),
        ({"ordinal": None}, "ordinal"),
        ({"scope": "tenant"}, "scope"),
        ({"scope": "user"}, "scope"),
        ({"scope": "run", "intent": "i"}, "scope"),
        ({"scope": "world", "intent": "i"}, "scope"),
        ({"lease": "99 milliseconds"}, "lease"),
        ({"lease": "-1 second"}, "lease"),
        ({"lease": "25 hours"}, "lease"),
        ({"provider_dedupes_for": "0"}, "provider_dedupes_for"),
        ({"provider_dedupes_for": "-1 hour"}, "provider_dedupes_for"),
    ],
)
def test_an_argument_without_a_meaning_is_refused(db: Rented, run: UUID, change: dict[str, Any], column: str) -> None:
    with nothing_written(db), refused("22W03", match=column) as refusal, db.as_app() as app:
        begin(app, run, **change)
    assert refusal.diag.column_name == column


@pytest.mark.parametrize("name", ["", " ", " x", "x\n", "x" * 513])
@pytest.mark.parametrize("field", ["tool", "intent"])
def test_a_name_that_is_none_is_refused(db: Rented, run: UUID, field: str, name: str) -> None:
    with nothing_written(db), refused("22W01", match=field), db.as_app() as app:
        call(app, "begin_effect", **{"run_uid": run, "attempt": 1, "tool": "refund", field: name})


def test_a_tool_is_named(db: Rented, run: UUID) -> None:
    with nothing_written(db), refused("22W01", match="tool is missing"), db.as_app() as app:
        begin(app, run, tool=None)


@pytest.mark.parametrize("lease", ["100 milliseconds", "1 day"])
def test_the_limits_of_a_lease_are_taken(db: Rented, run: UUID, lease: str) -> None:
    with db.as_app() as app:
        assert begin(app, run, lease=lease)["outcome"] == "execute"


def test_a_time_of_deduplication_that_no_clock_reaches_is_refused(db: Rented, run: UUID) -> None:
    with nothing_written(db), refused("22W03", match="provider_dedupes_for"), db.as_app() as app:
        begin(app, run, provider_dedupes_for="300000 years")


@pytest.mark.parametrize("wide", ["tool", "intent"])
def test_names_of_the_greatest_length_fit_their_index(db: Rented, wide: str) -> None:
    # Drawn by a fixed rule, so that no index can compress them: 512 characters of 4 bytes each.
    name = "".join(chr(0x20000 + 7919 * place * place % 0x8000) for place in range(512))
    with db.as_app("T1", "u" * 20) as app:
        run = start(app, open_session(app))
        begun = begin(app, run, tool=name, intent=name if wide == "intent" else None)
        assert begun["outcome"] == "execute"
    assert stored(db, "effects")[0]["tool"] == name
