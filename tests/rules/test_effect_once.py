"""Rule effect-once: one key, one recorded result; another payload or tool under the same key is an error."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from tests.rules.roles import acting
from tests.rules.rows import effect_row, insert
from tests.rules.world import World, effect_of, expire, superuser_replica, unchanged
from tests.support.calls import call
from tests.support.harness import Connection, Database, connections, refused, rows, wait_until_blocked

ME = ("T1", "U1")
KEYS: dict[str, dict[str, Any]] = {
    "run": {"scope": "run", "intent": None},
    "user": {"scope": "user", "intent": "pay-7"},
    "tenant": {"scope": "tenant", "intent": "pay-7"},
}
INDEX = {"run": "in_a_run", "user": "for_a_user", "tenant": "for_a_tenant"}
UNFIT: list[tuple[str, dict[str, Any]]] = [
    ("effects_intent_has_a_scope", {"scope": "user"}),
    ("effects_intent_has_a_scope", {"scope": "tenant"}),
    ("effects_intent_has_a_scope", {"scope": "all"}),
    ("effects_intent_has_a_scope", {"intent": "pay-7"}),
    ("effects_begun_again_while_provider_dedupes", {"begun_at": "2026-01-01T00:00:01Z"}),
    (
        "effects_begun_again_while_provider_dedupes",
        {"begun_at": "2026-01-02T00:00:00Z", "provider_dedupes_for": "24:00:00"},
    ),
]
HALF_OUTCOMES = [
    ("effects_only_success_has_result", "result = '{}'"),
    ("effects_only_success_has_result", "status = 'failed', finished_at = now(), result = '{}'"),
    ("effects_only_success_has_result", "status = 'unverified', result = '{}'"),
    ("effects_final_is_finished", "status = 'succeeded'"),
    ("effects_final_is_finished", "status = 'failed'"),
    ("effects_final_is_finished", "finished_at = now()"),
    ("effects_final_is_finished", "status = 'unverified', finished_at = now()"),
]
# What is the key or the payload of the effect, and what the provider was told.
FINGERPRINT = {
    "args": "'{\"order\": 9}'",
    "args_digest": "sha256('other')",
    "tool": "'mail'",
    "intent": "'other'",
    "idempotency_key": "'dpg_other'",
    "failures": "failures + 1",
}
REFUND: dict[str, Any] = {
    "attempt": 1,
    "tool": "refund",
    "args": '{"to": "acct-9", "cents": 500}',
    "intent": "refund-7",
}


def begin(connection: Connection, run: UUID, **changes: Any) -> Any:
    return call(connection, "begin_effect", run_uid=run, **{**REFUND, **changes})


def done(db: Database, run: UUID, **changes: Any) -> UUID:
    """Begin the refund and finish it."""
    with db.as_app() as app:
        effect: UUID = begin(app, run, **changes)["effect_uid"]
        call(app, "finish_effect", effect_uid=effect, attempt=1, status="succeeded", result='{"id": "re_7"}')
    return effect


@pytest.mark.parametrize("scope", sorted(KEYS))
def test_a_second_row_of_a_key_that_has_not_failed_is_refused(db: Database, scope: str) -> None:
    mine = World.of(db).mine
    row = effect_row(mine, **KEYS[scope])
    with db.as_engine() as engine:
        insert(engine, "effects", row)
    with unchanged(db), refused("23505", constraint=f"effects_once_{INDEX[scope]}"), db.as_engine() as engine:
        # As the next try: nothing else is in its way.
        insert(engine, "effects", {**row, "failures": 1})


@pytest.mark.parametrize("scope", sorted(KEYS))
def test_a_second_row_of_a_try_is_refused(db: Database, scope: str) -> None:
    mine = World.of(db).mine
    row = effect_row(mine, **KEYS[scope])
    with db.as_engine() as engine:
        insert(engine, "effects", row)
        engine.execute("update durable.effects set status = 'failed', finished_at = now() where step = 9")
    with unchanged(db), refused("23505", constraint=f"effects_tries_{INDEX[scope]}"), db.as_engine() as engine:
        insert(engine, "effects", row)
    with db.as_engine() as engine:
        assert insert(engine, "effects", {**row, "failures": 1}) == 1


def test_an_effect_has_a_uid_of_its_own(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db):
        with refused("42501"), db.as_engine() as engine:
            insert(engine, "effects", effect_row(mine, effect_uid=mine.begun))
        with refused("23505", constraint="effects_pkey"), db.superuser() as root:
            insert(root, "effects", effect_row(mine, effect_uid=mine.begun))


@pytest.mark.parametrize(("constraint", "changes"), UNFIT)
def test_the_table_refuses_to_the_engine_an_unfit_key_or_time(
    db: Database, constraint: str, changes: dict[str, Any]
) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("23514", constraint=constraint), db.as_engine() as engine:
        insert(engine, "effects", effect_row(mine, **changes))


@pytest.mark.parametrize(("constraint", "change"), HALF_OUTCOMES)
@pytest.mark.parametrize("role", ["engine", "steward"])
def test_the_table_refuses_half_an_outcome(db: Database, role: str, constraint: str, change: str) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("23514", constraint=constraint), acting(db, role) as connection:
        connection.execute(f"update durable.effects set {change} where effect_uid = '{mine.begun}'".encode())


@pytest.mark.parametrize("column", sorted(FINGERPRINT))
def test_a_stored_fingerprint_never_changes(db: Database, column: str) -> None:
    mine = World.of(db).mine
    statement = (
        f"update durable.effects set {column} = {FINGERPRINT[column]} where effect_uid = '{mine.unverified}'".encode()
    )
    with unchanged(db):
        for role in ("app", "engine", "steward", "janitor"):
            with refused("42501"), acting(db, role) as connection:
                connection.execute(statement)
        with refused("23W03", constraint="_300_frozen") as refusal, superuser_replica(db) as root:
            root.execute(statement)
    assert refusal.diag.column_name == column


@pytest.mark.parametrize("result", ['\'{"id": "re_8"}\'', "null"])
def test_a_recorded_result_never_changes(db: Database, result: str) -> None:
    mine = World.of(db).mine
    statement = f"update durable.effects set result = {result} where effect_uid = '{mine.done}'".encode()
    with unchanged(db):
        for role in ("engine", "steward"):
            with refused("23W02", constraint="_200_write_once"), acting(db, role) as connection:
                connection.execute(statement)
        with refused("42501"), db.as_janitor() as janitor:
            janitor.execute(statement)


@pytest.mark.parametrize(
    "changes",
    [{"status": "failed"}, {"status": "unverified"}, {"status": "succeeded", "result": '{"id": "re_8"}'}],
    ids=str,
)
def test_another_outcome_than_the_recorded_one_is_refused(db: Database, changes: dict[str, Any]) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("23W02"), db.as_app() as app:
        call(app, "finish_effect", effect_uid=mine.done, attempt=1, **changes)
    if changes["status"] != "unverified":
        seen = '{"channel": "bank", "seen": "it"}'
        for role in ("app", "operator"):
            with unchanged(db), refused("23W02"), acting(db, role) as connection:
                call(connection, "resolve_effect", effect_uid=mine.done, evidence=seen, **changes)


def test_the_recorded_outcome_again_is_accepted(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db), db.as_app() as app:
        told = call(app, "finish_effect", effect_uid=mine.done, attempt=1, status="succeeded", result='{"id": "re_7"}')
    assert told["outcome"] == "already_finished"


def test_the_same_key_is_answered_with_the_recorded_result(db: Database) -> None:
    mine = World.of(db).mine
    effect = done(db, mine.running)
    with unchanged(db), db.as_app() as app:
        for args in (REFUND["args"], '{"cents": 500, "to": "acct-9"}', '{"cents": 5.00e2, "to": "x", "to": "acct-9"}'):
            told = begin(app, mine.running, args=args)
            assert (told["outcome"], told["effect_uid"], told["result"]) == ("recorded", effect, {"id": "re_7"})
            assert (told["args_match"], told["attempt"]) == (True, None)


@pytest.mark.parametrize(
    ("column", "changes"),
    [
        ("args", {"args": '{"to": "acct-9", "cents": 501}'}),
        ("args", {"args": None}),
        ("tool", {"tool": "payout"}),
        ("tool", {"tool": "payout", "args_may_differ": True}),
        ("args", {"args": '{"to": "acct-9", "cents": 501}', "args_may_differ": None}),
    ],
    ids=str,
)
@pytest.mark.parametrize("scope", ["user", "tenant"])
def test_another_payload_or_tool_under_an_intent_is_refused(
    db: Database, scope: str, column: str, changes: dict[str, Any]
) -> None:
    mine = World.of(db).mine
    done(db, mine.running, scope=scope)
    with unchanged(db), refused("23W10") as refusal, db.as_app() as app:
        begin(app, mine.running, scope=scope, **changes)
    assert refusal.diag.column_name == column


def test_another_payload_gets_the_recorded_result_where_the_author_of_the_tool_lets_it(db: Database) -> None:
    mine = World.of(db).mine
    done(db, mine.running)
    with unchanged(db), db.as_app() as app:
        told = begin(app, mine.running, args='{"cents": 501}', args_may_differ=True)
    assert (told["outcome"], told["args_match"], told["result"]) == ("recorded", False, {"id": "re_7"})


def test_another_run_is_answered_with_the_recorded_result(db: Database) -> None:
    mine = World.of(db).mine
    effect = done(db, mine.running)
    with db.as_app() as app:
        other = call(app, "start_run", session_uid=mine.session, invocation_id="inv-3")["run_uid"]
        told = begin(app, other)
    assert (told["outcome"], told["effect_uid"]) == ("recorded", effect)


def test_a_try_that_failed_stays_and_the_next_one_is_a_row_with_another_key(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        first = begin(app, mine.running)
        call(app, "finish_effect", effect_uid=first["effect_uid"], attempt=1, status="failed")
        second = begin(app, mine.running)
    assert (second["outcome"], second["failures"]) == ("execute", 1)
    assert second["idempotency_key"] != first["idempotency_key"]
    assert effect_of(db, first["effect_uid"])["status"] == "failed"


def test_of_two_who_begin_at_once_one_is_told_to_execute(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        other = call(app, "start_run", session_uid=mine.session, invocation_id="inv-3")["run_uid"]

    def late(app: Connection) -> Any:
        with app.transaction():
            return begin(app, other, me=ME)

    with connections(db, 2) as (first, second), ThreadPoolExecutor() as threads:
        told = begin(first, mine.running, me=ME)
        waiting = threads.submit(late, second)
        wait_until_blocked(db, second, by=first)
        first.commit()
        answer = waiting.result(timeout=10)
    assert (told["outcome"], answer["outcome"], answer["attempt"]) == ("execute", "in_flight", None)
    assert len([row for row in rows(db, "effects") if row["intent"] == "refund-7"]) == 1


def test_an_effect_under_a_lease_is_not_resolved(db: Database) -> None:
    mine = World.of(db).mine
    said = {"effect_uid": mine.begun, "status": "failed", "evidence": '{"channel": "bank", "seen": "nothing"}'}
    for role in ("app", "operator"):
        with unchanged(db), refused("55W09"), acting(db, role) as connection:
            call(connection, "resolve_effect", **said)
    expire(db, mine.running)
    with db.as_app() as app:
        assert call(app, "resolve_effect", **said)["outcome"] == "resolved"
