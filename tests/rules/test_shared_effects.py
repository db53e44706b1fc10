"""Rule user-isolation, where an effect is meant for the whole tenant: its users see it, and no more than that."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.rules.roles import acting
from tests.rules.rows import effect_call_row, insert
from tests.rules.world import World, effect_of, unchanged
from tests.support.calls import call, call_all
from tests.support.harness import Database, refused

CLOSE: dict[str, Any] = {"attempt": 1, "step": 2, "tool": "close_books", "intent": "books-7", "scope": "tenant"}
SEEN = '{"channel": "ledger", "seen": "closed"}'


def begun(db: Database, **changes: Any) -> UUID:
    """U1 begins an effect of its tenant."""
    with db.as_app("T1", "U1") as app:
        asked = call(app, "begin_effect", run_uid=World.of(db).mine.running, **{**CLOSE, **changes})
    assert asked["outcome"] == "execute"
    effect: UUID = asked["effect_uid"]
    return effect


def finished(db: Database) -> UUID:
    effect = begun(db)
    with db.as_app("T1", "U1") as app:
        call(app, "finish_effect", effect_uid=effect, attempt=1, status="succeeded", result='{"closed": true}')
    return effect


@pytest.mark.parametrize("role", ["app", "engine"])
def test_users_of_the_tenant_see_it_and_others_don_t(db: Database, role: str) -> None:
    effect = finished(db)
    look = "select result from durable.effects where effect_uid = %s"
    for tenant, user, seen in (("T1", "U1", 1), ("T1", "U2", 1), ("T1", "U3", 1), ("T2", "U1", 0), ("T2", "U2", 0)):
        with acting(db, role, tenant, user) as connection:
            assert len(connection.execute(look, (effect,)).fetchall()) == seen


def test_it_is_in_the_list_of_every_user_of_the_tenant(db: Database) -> None:
    effect = finished(db)
    for tenant, user, listed in (("T1", "U2", True), ("T2", "U1", False)):
        with db.as_app(tenant, user) as app:
            found = {row["effect_uid"] for row in call_all(app, "list_effects")}
        assert (effect in found) is listed


def test_nothing_else_of_its_user_is_seen(db: Database) -> None:
    """Neither the run that did it, nor who asked for it, nor another effect of that run."""
    world = World.of(db)
    finished(db)
    with db.as_app("T1", "U2") as app:
        with refused("42W05"), app.transaction():
            call_all(app, "list_effects", run_uid=world.mine.running)
        for table in ("effect_calls", "checkpoints", "runs"):
            found = app.execute(f"select 1 from durable.{table} where run_uid = %s".encode(), (world.mine.running,))
            assert found.fetchall() == []
        with refused("42W05"), app.transaction():
            call(app, "load_checkpoint", run_uid=world.mine.running)
        others = app.execute("select scope from durable.effects where user_id = 'U1'").fetchall()
    assert [row["scope"] for row in others] == ["tenant"]


def test_another_user_s_run_is_answered_with_the_recorded_result(db: Database) -> None:
    world, effect = World.of(db), finished(db)
    with db.as_app("T1", "U2") as app:
        told = call(app, "begin_effect", run_uid=world.neighbour.running, **CLOSE)
    assert (told["outcome"], told["effect_uid"], told["result"]) == ("recorded", effect, {"closed": True})
    assert told["attempt"] is None


def test_while_one_user_is_at_it_the_other_waits(db: Database) -> None:
    world, effect = World.of(db), begun(db)
    with db.as_app("T1", "U2") as app:
        told = call(app, "begin_effect", run_uid=world.neighbour.running, **CLOSE)
    assert (told["outcome"], told["effect_uid"], told["attempt"]) == ("in_flight", effect, None)


@pytest.mark.parametrize("status", ["begun", "unverified"])
@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("finish_effect", {"attempt": 1, "status": "succeeded"}),
        ("finish_effect", {"attempt": 1, "status": "failed"}),
        ("resolve_effect", {"status": "failed", "evidence": SEEN}),
        ("resolve_effect", {"status": "succeeded", "evidence": SEEN}),
    ],
    ids=str,
)
def test_another_user_neither_finishes_nor_resolves_it(
    db: Database, function: str, arguments: dict[str, Any], status: str
) -> None:
    effect = begun(db)
    if status == "unverified":
        with db.as_app("T1", "U1") as app:
            call(app, "finish_effect", effect_uid=effect, attempt=1, status="unverified")
    with unchanged(db):
        messages = set()
        for uid in (effect, uuid4()):
            with refused("42W07") as refusal, db.as_app("T1", "U2") as app:
                call(app, function, effect_uid=uid, **arguments)
            messages.add(str(refusal.error).replace(str(uid), "..."))
        assert len(messages) == 1


def test_whoever_has_begun_it_again_finishes_it_and_the_first_user_no_more(db: Database) -> None:
    world = World.of(db)
    effect = begun(db, provider_dedupes_for="1 hour")
    with db.as_app("T1", "U1") as app:
        call(app, "finish_effect", effect_uid=effect, attempt=1, status="unverified")
    with db.as_app("T1", "U2") as app:
        asked = {"run_uid": world.neighbour.running, "provider_dedupes_for": "1 hour", **CLOSE}
        assert call(app, "begin_effect", **asked)["outcome"] == "execute"
    with unchanged(db), refused("42W07"), db.as_app("T1", "U1") as app:
        call(app, "finish_effect", effect_uid=effect, attempt=1, status="failed")
    with db.as_app("T1", "U2") as app:
        ended = {"effect_uid": effect, "run_uid": world.neighbour.running, "attempt": 1, "status": "succeeded"}
        call(app, "finish_effect", **ended)
    stored = effect_of(db, effect)
    assert (stored["status"], stored["user_id"], stored["held_by"]) == ("succeeded", "U1", world.neighbour.running)


def test_a_renewal_and_an_end_of_another_user_s_run_leave_it_alone(db: Database) -> None:
    world, effect = World.of(db), begun(db)
    before = effect_of(db, effect)
    with db.as_app("T1", "U2") as app:
        call(app, "begin_effect", run_uid=world.neighbour.running, **CLOSE)
        call(app, "renew_lease", run_uid=world.neighbour.running, attempt=1, lease="23 hours")
        call(app, "interrupt_run", run_uid=world.neighbour.running, attempt=1)
    assert effect_of(db, effect) == before


def test_the_engine_gives_it_to_another_user_s_run(db: Database) -> None:
    world, effect = World.of(db), begun(db, provider_dedupes_for="1 hour")
    with db.as_engine("T1", "U2") as engine:
        change = "update durable.effects set held_by = %s, begun_at = clock_timestamp() where effect_uid = %s"
        assert engine.execute(change, (world.neighbour.running, effect)).rowcount == 1


def test_the_engine_writes_no_call_for_another_user(db: Database) -> None:
    world, effect = World.of(db), begun(db)
    row = effect_call_row(world.neighbour, effect_uid=effect)
    with unchanged(db), refused("42501", match="row-level security"), db.as_engine("T1", "U1") as engine:
        insert(engine, "effect_calls", row)
