"""durable_pg.cli.read from Python: what the commands show, as dataclasses, in a transaction that can't write."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from durable_pg.cli import read
from durable_pg.cli.read.messages import read_content
from tests.cli.recorded import SENT, Recorded, record
from tests.support.harness import Database

FORMATS = Path(__file__).parents[1] / "support" / "formats"
MESSAGES = [case for file in sorted(FORMATS.glob("*.json")) for case in json.loads(file.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def recorded(module_db: Database) -> Recorded:
    return record(module_db)


@contextmanager
def connected(db: Database, login: str) -> Iterator[Connection]:
    url = db.url(login).replace("postgresql://", "postgresql+psycopg://")
    with create_engine(url, poolclass=NullPool).begin() as connection:
        yield connection


@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: case["name"])
def test_the_calls_shown_are_those_that_the_database_finds(case: dict[str, Any]) -> None:
    pieces = read_content(json.dumps(case["content"]))
    assert [piece.name for piece in pieces if piece.kind == "call"] == case["tool_calls"]


def test_a_connection_that_acts_already_reads_a_run(module_db: Database, recorded: Recorded) -> None:
    with connected(module_db, "app") as connection:
        connection.execute(text("select durable.act_as('T1', 'U1')"))
        run = read.find_run(connection, str(recorded.failed))
        timeline = read.read_timeline(connection, run)
        assert [found.run_uid for found in read.list_runs(connection)][-1] == recorded.failed
    assert (run.status, run.tools_executed) == ("failed", ("refund",))
    content = timeline.events[1].content
    assert content is not None
    assert content.value == SENT


def test_a_view_can_not_write(module_db: Database, recorded: Recorded) -> None:
    with pytest.raises(DBAPIError, match="read-only transaction"), connected(module_db, "app") as connection:
        view = read.open_view(connection, tenant="T1", user="U1")
        assert (view.role, view.acts_as) == ("app", "U1")
        connection.execute(text("select durable.open_session(app_name => 'support', session_id => 'new')"))


def test_a_view_reads_whatever_the_login_has_set(db: Database) -> None:
    run = record(db).failed
    with db.superuser() as root:
        for setting in (
            "default_transaction_isolation = 'serializable'",
            "search_path = ''",
            "timezone = 'Asia/Kathmandu'",
        ):
            root.execute(f"alter role auditor in database {db.name} set {setting}".encode())
    with connected(db, "auditor") as connection:
        read.open_view(connection)
        found = read.find_run(connection, str(run))
        timeline = read.read_timeline(connection, found)
    assert timeline.replay_verdict.reason == "tools_executed"
    assert found.started_at.utcoffset() == timeline.read_at.utcoffset() == timeline.events[0].recorded_at.utcoffset()
    assert str(found.started_at.tzinfo) == "UTC"


@pytest.mark.parametrize("tenant", ["T1", None])
def test_the_newest_runs_are_read_from_the_end_of_the_primary_key(
    module_db: Database, recorded: Recorded, tenant: str | None
) -> None:
    with connected(module_db, "auditor") as connection:
        statements: list[tuple[str, Any]] = []
        event.listen(connection, "before_cursor_execute", lambda *given: statements.append((given[2], given[3])))
        read.list_runs(connection, tenant=tenant, limit=2)
        ((statement, parameters),) = statements
        # The tables are small: without this the planner would read them whole.
        connection.execute(text("set local enable_seqscan = off"))
        lines = connection.exec_driver_sql(f"explain (costs off) {statement}", parameters).scalars().all()
    plan = "\n".join(lines)
    assert "Seq Scan" not in plan
    assert "Scan Backward using runs_pkey on runs" in plan
