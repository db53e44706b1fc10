"""Rule fenced: only the attempt that holds a run, under a live lease, writes for it; any other writes nothing."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.rules.world import World, effect_of, expire, superuser_replica, unchanged
from tests.support.calls import call
from tests.support.harness import Connection, Database, connections, refused, rows, wait_until_blocked

ME = ("T1", "U1")
SAY = {"author": "agent", "content": "{}", "invocation_id": "inv-2", "state_delta": '{"a": 2}'}
# Every write of a run's attempt, as the attempt that holds the run would make it.
WRITES: dict[str, dict[str, Any]] = {
    "append_event": SAY,
    "begin_effect": {"step": 2, "tool": "mail", "args": "{}"},
    "begin_effect again": {"step": 1, "tool": "refund", "args": '{"order": 7}'},
    "save_checkpoint": {"step": 2, "state": "{}"},
    "save_checkpoint again": {"step": 1, "state": '{"todo": ["answer"]}'},
    "record_step": {"step": 2, "state": "{}"},
    "record_step without a state": {"step": 2, "events": '[{"author": "agent", "content": {}}]'},
    "renew_lease": {"lease": "1 hour"},
    "interrupt_run": {"error": '{"why": "stopped"}'},
    "settle_run": {"status": "succeeded", "result": "{}"},
}


def write(connection: Connection, world: World, name: str, attempt: int | None, **more: Any) -> Any:
    function = name.split(" ", maxsplit=1)[0]
    key = {"session_uid": world.mine.session} if function == "append_event" else {"run_uid": world.mine.running}
    return call(connection, function, **key, **WRITES[name], attempt=attempt, **more)


def resumed(db: Database, world: World) -> None:
    """Let another worker take the run: the current attempt is 2."""
    expire(db, world.mine.running)
    with db.as_app() as app:
        again = call(app, "start_run", session_uid=world.mine.session, invocation_id="inv-2", lease="1 day")
    assert (again["outcome"], again["attempt"]) == ("resumed", 2)


@pytest.mark.parametrize("attempt", [None, 0, 2, -1])
@pytest.mark.parametrize("name", sorted(WRITES))
def test_another_attempt_writes_nothing(db: Database, name: str, attempt: int | None) -> None:
    world = World.of(db)
    with unchanged(db), refused("55W04"), db.as_app() as app:
        write(app, world, name, attempt)


@pytest.mark.parametrize("name", sorted(WRITES))
def test_an_attempt_that_was_replaced_writes_nothing(db: Database, name: str) -> None:
    world = World.of(db)
    resumed(db, world)
    with unchanged(db), refused("55W04", match="current attempt: 2"), db.as_app() as app:
        write(app, world, name, 1)


@pytest.mark.parametrize("name", sorted(WRITES))
def test_an_attempt_whose_lease_is_over_writes_nothing(db: Database, name: str) -> None:
    world = World.of(db)
    expire(db, world.mine.running)
    with unchanged(db), refused("55W04", match="its lease ran out"), db.as_app() as app:
        write(app, world, name, 1)


@pytest.mark.parametrize("name", sorted(set(WRITES) - {"interrupt_run", "append_event"}))
def test_an_attempt_that_gave_the_run_back_writes_nothing(db: Database, name: str) -> None:
    world = World.of(db)
    with db.as_app() as app:
        write(app, world, "interrupt_run", 1)
    with unchanged(db), refused("55W04", match="the run is interrupted"), db.as_app() as app:
        write(app, world, name, 1)


@pytest.mark.parametrize("name", sorted(set(WRITES) - {"settle_run"}))
def test_the_attempt_of_a_run_that_was_called_off_writes_nothing(db: Database, name: str) -> None:
    world = World.of(db)
    with db.as_operator() as operator:
        call(operator, "cancel_run", run_uid=world.mine.running, reason="asked by phone")
    with unchanged(db), refused("55W03"), db.as_app() as app:
        write(app, world, name, 1)


@pytest.mark.parametrize("name", sorted(WRITES))
def test_the_attempt_that_holds_the_run_writes(db: Database, name: str) -> None:
    world = World.of(db)
    with db.as_app() as app:
        write(app, world, name, 1)


@pytest.mark.parametrize("name", sorted(set(WRITES) - {"append_event", "interrupt_run", "settle_run"}))
def test_who_waited_while_the_run_was_taken_writes_nothing(db: Database, name: str) -> None:
    """The lock comes first, then the comparison: what was true before the wait counts for nothing."""
    world = World.of(db)

    def late(app: Connection) -> None:
        with app.transaction():
            write(app, world, name, 1, me=ME)

    with connections(db, 2) as (first, second), ThreadPoolExecutor() as threads:
        call(first, "interrupt_run", me=ME, run_uid=world.mine.running, attempt=1)
        call(first, "start_run", me=ME, session_uid=world.mine.session, invocation_id="inv-2")
        waiting = threads.submit(late, second)
        wait_until_blocked(db, second, by=first)
        first.commit()
        with refused("55W04", match="current attempt: 2"):
            waiting.result(timeout=10)
    assert {row["attempt"] for row in rows(db, "checkpoints") if row["run_uid"] == world.mine.running} == {1}


@pytest.mark.parametrize("status", ["succeeded", "failed", "unverified"])
def test_a_late_true_outcome_is_kept(db: Database, status: str) -> None:
    """The one exception: nobody has begun the effect again, so its own worker knows best."""
    world = World.of(db)
    resumed(db, world)
    with db.as_app() as app:
        told = call(app, "finish_effect", effect_uid=world.mine.begun, attempt=1, status=status)
    assert (told["outcome"], effect_of(db, world.mine.begun)["status"]) == ("finished", status)


@pytest.mark.parametrize("attempt", [None, 0, 2])
def test_an_attempt_that_did_not_begin_the_effect_finishes_nothing(db: Database, attempt: int | None) -> None:
    world = World.of(db)
    with unchanged(db), refused("55W04"), db.as_app() as app:
        call(app, "finish_effect", effect_uid=world.mine.begun, attempt=attempt, status="succeeded")


@pytest.mark.parametrize("status", ["succeeded", "failed", "unverified"])
def test_a_late_outcome_of_an_effect_that_was_begun_again_is_refused(db: Database, status: str) -> None:
    world = World.of(db)
    key = {"run_uid": world.mine.running, "step": 2, "tool": "book", "provider_dedupes_for": "1 hour"}
    with db.as_app() as app:
        first = call(app, "begin_effect", attempt=1, **key)
    resumed(db, world)
    with db.as_app() as app:
        again = call(app, "begin_effect", attempt=2, **key)
    assert (first["outcome"], again["outcome"]) == ("execute", "execute")
    assert (again["effect_uid"], again["idempotency_key"]) == (first["effect_uid"], first["idempotency_key"])
    with unchanged(db), refused("55W04"), db.as_app() as app:
        call(app, "finish_effect", effect_uid=first["effect_uid"], attempt=1, status=status)


@pytest.mark.parametrize("function", ["finish_effect", "record_step"])
def test_a_late_outcome_of_an_effect_that_another_run_has_begun_again_is_refused(db: Database, function: str) -> None:
    """Attempts are counted run by run: both runs are at their first."""
    world = World.of(db)
    key = {"attempt": 1, "tool": "book", "intent": "book-7", "provider_dedupes_for": "1 hour"}
    with db.as_app() as app:
        effect = call(app, "begin_effect", run_uid=world.mine.running, **key)["effect_uid"]
    with db.superuser() as root:
        root.execute("update durable.effects set lease_expires_at = now() where effect_uid = %s", (effect,))
    with db.as_app() as app:
        other = call(app, "start_run", session_uid=world.mine.session, invocation_id="inv-3")["run_uid"]
        assert call(app, "begin_effect", run_uid=other, **key)["outcome"] == "execute"
    late = f'[{{"effect_uid": "{effect}", "status": "failed"}}]'
    with unchanged(db), refused("55W04"), db.as_app() as app:
        if function == "finish_effect":
            call(app, "finish_effect", effect_uid=effect, attempt=1, status="failed")
        else:
            call(app, "record_step", run_uid=world.mine.running, attempt=1, step=2, finished=late)


def test_a_worker_of_the_same_name_does_not_inherit_its_lease(db: Database) -> None:
    world = World.of(db)
    with db.as_app() as app:
        start = {"session_uid": world.mine.session, "invocation_id": "inv-2", "worker": "w-0"}
        told = call(app, "start_run", **start)
    assert (told["outcome"], told["attempt"]) == ("busy", None)
    resumed(db, world)
    with unchanged(db), refused("55W04"), db.as_app() as app:
        call(app, "renew_lease", run_uid=world.mine.running, attempt=1)


def test_an_attempt_of_no_run_appends_nothing(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("55W04", match="no run"), db.as_app() as app:
        say = {**SAY, "invocation_id": "never-started"}
        call(app, "append_event", session_uid=mine.session, attempt=1, **say)


def test_an_event_carries_the_attempt_that_wrote_it(db: Database) -> None:
    world = World.of(db)
    resumed(db, world)
    with db.as_app() as app:
        seq = write(app, world, "append_event", 2)["seq"]
    (event,) = [row for row in rows(db, "events") if row["session_uid"] == world.mine.session and row["seq"] == seq]
    assert event["attempt"] == 2


def test_the_user_speaks_whoever_holds_the_run(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        say = {"author": "user", "content": '{"text": "stop"}', "invocation_id": "inv-2", "repeatable": True}
        assert call(app, "append_event", session_uid=mine.session, **say)["outcome"] == "appended"


def test_a_stale_revision_appends_nothing(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db):
        for revision in (0, 5, 7):
            with refused("55W02"), db.as_app() as app:
                say: dict[str, Any] = {"author": "agent", "content": "{}", "occurred_at": "2999-01-01"}
                call(app, "append_event", session_uid=mine.session, expected_revision=revision, **say)


@pytest.mark.parametrize("change", ["attempt = 0, first_attempt = 0", "first_attempt = 2", "max_attempts = 0"])
def test_attempts_count_from_1(db: Database, change: str) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("23514", constraint="runs_attempts_count_from_1"), db.superuser() as root:
        root.execute(f"update durable.runs set {change} where run_uid = '{mine.running}'".encode())


@pytest.mark.parametrize("who", ["engine", "superuser", "replica"])
def test_an_attempt_never_shrinks(db: Database, who: str) -> None:
    world = World.of(db)
    resumed(db, world)
    statement = f"update durable.runs set attempt = 1 where run_uid = '{world.mine.running}'".encode()
    block = db.as_engine() if who == "engine" else db.superuser() if who == "superuser" else superuser_replica(db)
    with unchanged(db), refused("23W12", constraint="_350_growing") as refusal, block as bold:
        bold.execute(statement)
    assert refusal.diag.column_name == "attempt"
