"""Rule tools-write-once: tools_executed goes from NULL to a value exactly once; so does the rest of an outcome."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.rules.world import Caller, World, owner_without_force, superuser_replica, unchanged
from tests.support.calls import call
from tests.support.harness import Database, connections, refused, rows, wait_until_blocked

# What a later statement would put in the place of a stored value, NULL included.
REWRITES = [
    ("runs", "tools_executed", ["'{}'", "'{other}'", "null", "array_append(tools_executed, 'mail')"]),
    ("runs", "result", ["'{}'", "null"]),
    ("runs", "error", ["'{}'", "null"]),
    ("runs", "settled_at", ["clock_timestamp()", "'-infinity'"]),
    ("effects", "result", ["'{}'", "null"]),
    ("effects", "evidence", ["'{}'", "null"]),
    ("effects", "finished_at", ["clock_timestamp()", "'-infinity'"]),
    ("sessions", "closed_at", ["clock_timestamp()", "'infinity'"]),
    ("sessions", "close_reason", ["'another'", "null"]),
]


def statements(db: Database, table: str, column: str, values: list[str]) -> list[str]:
    mine = World.of(db).mine
    where = {
        "runs": f"run_uid = '{mine.settled}'",
        "sessions": f"session_uid = '{mine.closed}'",
        "effects": f"effect_uid = '{mine.resolved}'",
    }[table]
    return [f"update durable.{table} set {column} = {value} where {where}" for value in values]


def test_a_settled_value_stays(db: Database) -> None:
    mine = World.of(db).mine
    before = rows(db, "runs")
    with db.connect("app", autocommit=True) as app:
        settle = Caller(app, mine.tenant, mine.user)
        told = {
            "run_uid": mine.settled,
            "status": "failed",
            "error": '{"code": 429}',
            "result": '{"n": 1}',
            "attempt": 1,
        }
        for again in (["refund"], ["refund", "refund"], None):
            answer = settle("settle_run", **told, tools_executed=again)
            assert (answer["outcome"], answer["tools_executed"]) == ("already_settled", ["refund"])
        for other in ([], ["mail"], ["refund", "mail"]):
            with refused("23W02", constraint="_200_write_once", match="{refund}"):
                settle("settle_run", **told, tools_executed=other)
        for changes in ({"status": "cancelled"}, {"result": "{}"}, {"error": None}):
            with refused("55W03"):
                settle("settle_run", **{**told, **changes})
    assert rows(db, "runs") == before


@pytest.mark.parametrize(("table", "column", "values"), REWRITES)
def test_the_engine_changes_no_stored_value(db: Database, table: str, column: str, values: list[str]) -> None:
    with unchanged(db):
        for statement in statements(db, table, column, values):
            with refused("23W02", constraint="_200_write_once") as refusal, db.as_engine() as engine:
                engine.execute(statement.encode())
            assert (refusal.diag.table_name, refusal.diag.column_name) == (table, column)


@pytest.mark.parametrize(("table", "column", "values"), REWRITES)
def test_nobody_else_changes_a_stored_value(db: Database, table: str, column: str, values: list[str]) -> None:
    with unchanged(db):
        for statement in statements(db, table, column, values):
            with refused("42501"), db.as_app() as app:
                app.execute(statement.encode())
            with refused("42501"), db.as_operator() as operator:
                operator.execute(statement.encode())
            with refused("42W03"), db.as_owner("T1", "U1") as owner:
                owner.execute(statement.encode())
            with refused("23W02"), owner_without_force(db, table) as owner:
                owner.execute(statement.encode())
            with refused("23W02"), db.superuser() as root:
                root.execute(statement.encode())


@pytest.mark.parametrize("table", ["runs", "sessions", "effects"])
def test_replication_mode_rewrites_no_value(db: Database, table: str) -> None:
    (_, column, values) = next(rewrite for rewrite in REWRITES if rewrite[0] == table)
    with unchanged(db), refused("23W02", constraint="_200_write_once"), superuser_replica(db) as root:
        root.execute(statements(db, table, column, values)[0].encode())


@pytest.mark.parametrize(("table", "column", "values"), REWRITES)
def test_the_same_value_again_is_accepted(db: Database, table: str, column: str, values: list[str]) -> None:
    with unchanged(db), db.as_engine() as engine:
        for statement in statements(db, table, column, [column]):
            assert engine.execute(statement.encode()).rowcount == 1


def test_a_settled_run_with_unknown_tools_stays_unknown(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_app() as app:
        run = call(app, "start_run", session_uid=mine.session, invocation_id="silent")
        settled = call(app, "settle_run", run_uid=run["run_uid"], attempt=1, status="failed")
    assert settled["tools_executed"] is None
    with unchanged(db):
        with refused("23W02"), db.as_app() as app:
            call(app, "settle_run", run_uid=run["run_uid"], status="failed", tools_executed=[])
        with refused("23W04", constraint="_400_legal_transitions"), db.as_engine() as engine:
            engine.execute("update durable.runs set tools_executed = '{}' where run_uid = %s", (run["run_uid"],))


@pytest.mark.pg(">= 15")
def test_a_merge_changes_no_stored_value(db: Database) -> None:
    mine = World.of(db).mine
    merge = """
        merge into durable.runs as r using (select %s::uuid as uid) as one on r.run_uid = one.uid
        when matched then update set tools_executed = '{}'
    """
    with unchanged(db), refused("23W02"), db.as_engine() as engine:
        engine.execute(merge, (mine.settled,))


def test_of_two_settlers_one_wins_and_the_other_is_told(db: Database) -> None:
    mine = World.of(db).mine
    done: dict[str, Any] = {"me": ("T1", "U1"), "run_uid": mine.running, "attempt": 1, "status": "succeeded"}

    def settle(app: Any, tools: list[str]) -> Any:
        with app.transaction():
            return call(app, "settle_run", **done, tools_executed=tools)

    with connections(db, 2) as (first, second), ThreadPoolExecutor() as threads:
        call(first, "settle_run", **done, tools_executed=["refund"])
        waiting = threads.submit(settle, second, ["refund", "mail"])
        wait_until_blocked(db, second, by=first)
        first.commit()
        with refused("23W02", match="{refund}"):
            waiting.result(timeout=10)
    assert [row["tools_executed"] for row in rows(db, "runs") if row["run_uid"] == mine.running] == [["refund"]]
