"""Rule tools-complete: a settled run names every recorded tool call, and none can be recorded after it."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.rules.rows import insert, run_row
from tests.rules.world import World, unchanged
from tests.support.calls import call
from tests.support.harness import Connection, Database, connections, refused, rows, wait_until_blocked

ME = ("T1", "U1")
CALLS_MAIL = '{"parts": [{"functionCall": {"name": "mail"}}]}'
HALF_OUTCOMES = [
    (
        "runs_tools_are_named",
        "set status = 'failed', lease_holder = null, settled_at = now(), tools_executed = '{a,null}'",
    ),
    ("runs_only_settled_has_outcome", "set tools_executed = '{}'"),
    ("runs_only_settled_has_outcome", "set result = '1'"),
    ("runs_only_settled_has_outcome", "set error = '1'"),
    ("runs_open_is_not_settled", "set settled_at = now()"),
    ("runs_open_is_not_settled", "set status = 'failed', lease_holder = null"),
    ("runs_open_is_not_settled", "set status = 'interrupted', lease_holder = null, settled_at = now()"),
    ("runs_running_has_a_holder", "set lease_holder = null"),
    ("runs_running_has_a_holder", "set status = 'interrupted'"),
]


def stored(db: Database, run_uid: Any) -> Any:
    (row,) = [row for row in rows(db, "runs") if row["run_uid"] == run_uid]
    return row["tools_executed"]


@pytest.mark.parametrize("tools", [[], ["mail"]])
def test_a_recorded_call_can_not_be_left_out(db: Database, tools: list[str]) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("23W08", match="left out: refund"), db.as_app() as app:
        call(app, "settle_run", status="succeeded", attempt=1, run_uid=mine.running, tools_executed=tools)


def test_the_database_names_the_tools_itself(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        say = {"session_uid": mine.session, "author": "agent", "invocation_id": "inv-2", "attempt": 1}
        call(app, "append_event", content=CALLS_MAIL, extra_tool_calls=["book", "mail"], **say)
        call(app, "settle_run", status="succeeded", attempt=1, run_uid=mine.running)
    assert stored(db, mine.running) == ["book", "mail", "refund"]


def test_more_tools_than_are_recorded_may_be_named(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        call(
            app,
            "settle_run",
            status="succeeded",
            attempt=1,
            run_uid=mine.running,
            tools_executed=["refund", "mail", "refund"],
        )
    assert stored(db, mine.running) == ["mail", "refund"]


def test_an_effect_that_no_event_tells_of_is_named(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        run = call(app, "start_run", session_uid=mine.session, invocation_id="inv-9")["run_uid"]
        call(app, "begin_effect", run_uid=run, attempt=1, tool="mail")
        with refused("23W08", match="left out: mail"), app.transaction():
            call(app, "settle_run", status="succeeded", attempt=1, run_uid=run, tools_executed=["refund"])
        call(app, "settle_run", status="succeeded", attempt=1, run_uid=run)
    assert stored(db, run) == ["mail"]


@pytest.mark.parametrize("status", ["succeeded", "failed", "unverified"])
def test_an_effect_is_named_however_it_ended(db: Database, status: str) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        run = call(app, "start_run", session_uid=mine.session, invocation_id="inv-9")["run_uid"]
        effect = call(app, "begin_effect", run_uid=run, attempt=1, tool="mail")["effect_uid"]
        call(app, "finish_effect", effect_uid=effect, attempt=1, status=status)
        call(app, "settle_run", status="failed", attempt=1, run_uid=run)
    assert stored(db, run) == ["mail"]


def test_an_effect_that_another_run_has_done_is_named(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        run = call(app, "start_run", session_uid=mine.session, invocation_id="inv-9")["run_uid"]
        asked = call(app, "begin_effect", run_uid=run, attempt=1, tool="refund", intent="mail-6")
        call(app, "settle_run", status="succeeded", attempt=1, run_uid=run)
    assert asked["outcome"] == "recorded"
    assert stored(db, run) == ["refund"]


@pytest.mark.parametrize("settled_by", ["cancel_run", "interrupt_run", "operator"])
def test_however_a_run_settles_its_tools_are_named(db: Database, settled_by: str) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        run = call(app, "start_run", session_uid=mine.session, invocation_id="inv-9", max_attempts=1)["run_uid"]
        call(app, "begin_effect", run_uid=run, attempt=1, tool="mail")
        if settled_by == "interrupt_run":
            call(app, "interrupt_run", run_uid=run, attempt=1)
        elif settled_by == "cancel_run":
            call(app, "cancel_run", run_uid=run, reason="called off")
    if settled_by == "operator":
        with db.as_operator() as operator:
            call(operator, "cancel_run", run_uid=run, reason="called off")
    assert stored(db, run) == ["mail"]


def test_an_effect_that_is_being_begun_is_named(db: Database) -> None:
    mine = World.of(db).mine

    def settle(app: Connection) -> Any:
        with app.transaction():
            return call(app, "settle_run", status="succeeded", attempt=1, me=ME, run_uid=mine.running)["tools_executed"]

    with connections(db, 2) as (first, second), ThreadPoolExecutor() as threads:
        call(first, "begin_effect", me=ME, run_uid=mine.running, attempt=1, step=2, tool="mail")
        settling = threads.submit(settle, second)
        wait_until_blocked(db, second, by=first)
        first.commit()
        assert settling.result(timeout=10) == ["mail", "refund"]


def test_an_effect_that_comes_while_settling_is_not_begun(db: Database) -> None:
    mine = World.of(db).mine

    def begin(app: Connection) -> Any:
        with app.transaction():
            return call(app, "begin_effect", me=ME, run_uid=mine.running, attempt=1, step=2, tool="mail")

    before = rows(db, "effects")
    with connections(db, 2) as (first, second), ThreadPoolExecutor() as threads:
        call(first, "settle_run", status="succeeded", attempt=1, me=ME, run_uid=mine.running)
        beginning = threads.submit(begin, second)
        wait_until_blocked(db, second, by=first)
        first.commit()
        with refused("55W03"):
            beginning.result(timeout=10)
    assert rows(db, "effects") == before


def test_a_run_with_nothing_recorded_settles_as_unknown(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        run = call(app, "start_run", session_uid=mine.session, invocation_id="inv-9")["run_uid"]
        call(app, "append_event", session_uid=mine.session, author="user", content='"hi"', invocation_id="inv-9")
        call(app, "settle_run", status="succeeded", attempt=1, run_uid=run)
    assert stored(db, run) is None


def test_a_run_that_answered_without_tools_settles_as_none(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        run = call(app, "start_run", session_uid=mine.session, invocation_id="inv-9")["run_uid"]
        call(
            app,
            "append_event",
            session_uid=mine.session,
            author="agent",
            attempt=1,
            content='"hi"',
            invocation_id="inv-9",
        )
        call(app, "settle_run", status="succeeded", attempt=1, run_uid=run)
    assert stored(db, run) == []


@pytest.mark.parametrize(
    "arguments",
    [{}, {"author": "user"}, {"attempt": 1}, {"event_id": "late"}, {"repeatable": True}, {"occurred_at": "2000-01-01"}],
)
def test_nothing_is_recorded_for_a_settled_run(db: Database, arguments: dict[str, Any]) -> None:
    mine = World.of(db).mine
    late = {"author": "agent", "content": CALLS_MAIL, "invocation_id": "inv-1", "session_uid": mine.session}
    if arguments.get("author") == "user" or arguments.get("repeatable"):
        late["repeatable"] = True  # otherwise it would be another opening message, refused as such
    with unchanged(db), refused("55W03"), db.as_app() as app:
        call(app, "append_event", **{**late, **arguments})


def test_a_call_that_is_being_recorded_is_named(db: Database) -> None:
    mine = World.of(db).mine

    def settle(app: Connection) -> Any:
        with app.transaction():
            return call(app, "settle_run", status="succeeded", attempt=1, me=ME, run_uid=mine.running)["tools_executed"]

    with connections(db, 2) as (first, second), ThreadPoolExecutor() as threads:
        say = {"session_uid": mine.session, "author": "agent", "invocation_id": "inv-2", "attempt": 1}
        call(first, "append_event", me=ME, content=CALLS_MAIL, **say)
        settling = threads.submit(settle, second)
        wait_until_blocked(db, second, by=first)
        first.commit()
        assert settling.result(timeout=10) == ["mail", "refund"]
    assert stored(db, mine.running) == ["mail", "refund"]


def test_a_call_that_comes_while_settling_is_refused(db: Database) -> None:
    mine = World.of(db).mine

    def append(app: Connection) -> Any:
        with app.transaction():
            say = {"session_uid": mine.session, "author": "agent", "invocation_id": "inv-2", "attempt": 1}
            return call(app, "append_event", me=ME, content=CALLS_MAIL, **say)

    with connections(db, 2) as (first, second), ThreadPoolExecutor() as threads:
        call(first, "settle_run", status="succeeded", attempt=1, me=ME, run_uid=mine.running)
        appending = threads.submit(append, second)
        wait_until_blocked(db, second, by=first)
        first.commit()
        with refused("55W03"):
            appending.result(timeout=10)
    assert stored(db, mine.running) == ["refund"]
    assert len([row for row in rows(db, "events") if row["session_uid"] == mine.session]) == 6


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
@pytest.mark.parametrize("function", ["settle_run", "retry_verdict", "replay_verdict"])
def test_an_old_snapshot_derives_nothing(db: Database, function: str, level: str) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("55W05"), db.connect("app") as app:
        app.execute(f"set transaction isolation level {level}".encode())
        call(app, function, me=ME, run_uid=mine.running)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_an_old_snapshot_records_no_call_after_settlement(db: Database, level: str) -> None:
    mine = World.of(db).mine
    with db.connect("app") as late:
        late.execute(f"set transaction isolation level {level}".encode())
        late.execute("select 1 from durable.transitions")  # takes the snapshot
        with db.as_app() as app:
            call(app, "settle_run", status="succeeded", attempt=1, run_uid=mine.running)
        with unchanged(db), refused("40001"), late.transaction():
            say = {"session_uid": mine.session, "author": "agent", "invocation_id": "inv-2", "attempt": 1}
            call(late, "append_event", me=ME, content=CALLS_MAIL, **say)


@pytest.mark.parametrize(("constraint", "statement"), HALF_OUTCOMES)
def test_the_table_refuses_half_an_outcome(db: Database, constraint: str, statement: str) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("23514", constraint=constraint), db.as_engine() as engine:
        engine.execute(f"update durable.runs {statement} where run_uid = '{mine.running}'".encode())


@pytest.mark.parametrize("constraint", ["runs_one_of_an_invocation", "runs_pkey"])
def test_an_invocation_has_one_run(db: Database, constraint: str) -> None:
    mine = World.of(db).mine
    again = {"invocation_id": "inv-1"} if constraint == "runs_one_of_an_invocation" else {"run_uid": mine.settled}
    with unchanged(db), refused("23505", constraint=constraint), db.as_engine() as engine:
        insert(engine, "runs", run_row(mine, **again))
