"""D15, eclipse-dirigible/dirigible#6249: saving a whole row from a stale copy undid a value stored meanwhile."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import UUID

import psycopg
import pytest

from tests.support.calls import open_session, settle, start
from tests.support.harness import Connection, connections, refused
from tests.support.rented import Rented, nothing_written, stored

SENT = ["send_email"]
RACES = 100


@pytest.fixture
def run(db: Rented) -> UUID:
    """A run that was settled as having sent a mail."""
    with db.as_app() as app:
        run = start(app, open_session(app))
        settle(app, run, tools_executed=SENT)
    return run


@pytest.mark.parametrize("tools", [[], ["send_sms"], ["send_email", "send_sms"]])
def test_another_value_is_refused_and_the_caller_told_the_stored_one(db: Rented, run: UUID, tools: list[str]) -> None:
    with nothing_written(db), refused("23W02", "_200_write_once") as refusal, db.as_app() as app:
        settle(app, run, status="failed", tools_executed=tools)
    assert refusal.diag.message_detail == f"stored: {{send_email}}; refused: {{{','.join(tools)}}}"


@pytest.mark.parametrize("tools", [SENT, SENT * 2, None])
def test_the_same_value_again_is_a_no_op(db: Rented, run: UUID, tools: list[str] | None) -> None:
    before = stored(db, "runs")
    with db.as_app() as app:
        assert settle(app, run, tools_executed=tools)["outcome"] == "already_settled"
    assert stored(db, "runs") == before


def test_the_app_can_save_no_row(db: Rented, run: UUID) -> None:
    with nothing_written(db), refused("42501"), db.as_app() as app:
        app.execute("update durable.runs set status = 'failed', tools_executed = null")


@pytest.mark.parametrize("status", ["done", "succeeded", "failed"])
@pytest.mark.parametrize("tools", ["null", "'{}'", "'{send_sms}'"])
def test_a_whole_row_save_past_the_functions_is_refused_by_the_guard(
    db: Rented, run: UUID, status: str, tools: str
) -> None:
    with nothing_written(db), refused("23W02", "_200_write_once") as refusal, db.as_engine() as engine:
        engine.execute(f"update durable.runs set status = '{status}', tools_executed = {tools}".encode())
    assert str(refusal.diag.message_detail).startswith('stored: ["send_email"]; refused: ')


def test_an_equal_save_past_the_functions_is_accepted(db: Rented, run: UUID) -> None:
    with nothing_written(db), db.as_engine() as engine:
        updated = engine.execute("update durable.runs set status = 'succeeded', tools_executed = '{send_email}'")
        assert updated.rowcount == 1


def test_an_upsert_is_refused_by_the_guard_even_to_a_superuser(db: Rented, run: UUID) -> None:
    with nothing_written(db), refused("23W02", "_200_write_once"), db.superuser() as root:
        root.execute(
            """
            insert into durable.runs (
                tenant_id, run_uid, session_uid, user_id, invocation_id, generation, trigger,
                lease_holder, lease_expires_at
            )
            select
                tenant_id, run_uid, session_uid, user_id, invocation_id, generation, trigger, 'w', lease_expires_at
            from durable.runs
            where run_uid = %s
            on conflict (tenant_id, run_uid) do update set tools_executed = '{}'
            """,
            (run,),
        )


def test_a_save_from_an_older_snapshot_is_a_serialization_failure(db: Rented) -> None:
    with db.as_app() as app:
        run = start(app, open_session(app))
    with refused("40001"), db.connect("mig") as stale:
        stale.execute("set transaction isolation level repeatable read")
        stale.execute(f"set local durable.tenant_id = '{db.tenant('T1')}'; set local durable.user_id = 'U1'".encode())
        stale.execute("set local role durable_engine")
        assert stale.execute("select tools_executed from durable.runs").fetchall() == [{"tools_executed": None}]
        with db.as_app() as app:
            settle(app, run, tools_executed=SENT)
        stale.execute(
            "update durable.runs set status = 'failed', lease_holder = null, settled_at = now(), tools_executed = '{}'"
        )
    (settled,) = stored(db, "runs")
    assert (settled["status"], settled["tools_executed"]) == ("succeeded", SENT)


def test_of_two_settlers_at_the_same_instant_one_wins_and_the_other_is_told_what_is_stored(db: Rented) -> None:
    with db.as_app() as app:
        runs = [start(app, open_session(app, f"s{race}")) for race in range(RACES)]
    together = Barrier(2, timeout=60)

    def race(app: Connection, tools: list[str]) -> list[str | None]:
        told: list[str | None] = []
        for run in runs:
            together.wait()
            try:
                db.act_as(app)
                settle(app, run, tools_executed=tools)
                told.append(None)
                app.commit()
            except psycopg.Error as error:
                if error.sqlstate != "23W02":
                    raise
                told.append(error.diag.message_detail)
                app.rollback()
        return told

    with connections(db, 2) as (one, other), ThreadPoolExecutor() as threads:
        sent, nothing = threads.map(race, (one, other), (SENT, []))
    kept = {run["run_uid"]: run["tools_executed"] for run in stored(db, "runs")}
    for run, told_sent, told_nothing in zip(runs, sent, nothing, strict=True):
        if kept[run] == SENT:
            assert (told_sent, told_nothing) == (None, "stored: {send_email}; refused: {}")
        else:
            assert kept[run] == []
            assert (told_sent, told_nothing) == ("stored: {}; refused: {send_email}", None)
