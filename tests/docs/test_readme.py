"""What the README shows is run as it stands there."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from psycopg.types.json import Json, Jsonb

from tests.harness import Database, refused, value
from tests.migrations.support import psql

README = (Path(__file__).parents[2] / "README.md").read_text()


def _block(language: str) -> str:
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    return str(block)


def _run_walk_through(db: Database, tmp_path: Path) -> str:
    script = tmp_path / "turn.sql"
    script.write_text(_block("sql"))
    done = psql(db.url("app"), db.server.major, "-v", "ON_ERROR_STOP=1", "-f", str(script))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_psql_walk_through_records_a_turn(db: Database, tmp_path: Path) -> None:
    shown = _run_walk_through(db, tmp_path)
    assert "appended" in shown
    assert "duplicate" not in shown
    assert re.search(r"succeeded\s*\|\s*settled\s*\|\s*\{refund\}", shown)


def test_the_psql_walk_through_can_be_repeated(db: Database, tmp_path: Path) -> None:
    _run_walk_through(db, tmp_path)
    shown = _run_walk_through(db, tmp_path)
    assert "appended" not in shown
    assert re.search(r"succeeded\s*\|\s*already_settled\s*\|\s*\{refund\}", shown)
    with db.as_auditor() as auditor:
        assert value(auditor, "select count(*) from durable.events") == 2


def test_the_node_example_appends_once(db: Database, tmp_path: Path) -> None:
    """Needs node and a folder with the package pg in DURABLE_PG_NODE_MODULES."""
    modules = os.environ.get("DURABLE_PG_NODE_MODULES")
    node = shutil.which("node")
    if node is None or modules is None:
        pytest.skip("no node, or no DURABLE_PG_NODE_MODULES")
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "turn.mjs").write_text(_block("js"))
    environment = {**os.environ, "DURABLE_PG_URL": db.url("app")}
    shown = [
        subprocess.run(
            [node, "turn.mjs"], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert shown == ["appended", "duplicate"]


TYPED = """
prepare append (varchar, varchar) as select outcome from durable.append_event(
    me => durable.act_as('T1', 'U1'), session_uid => $1{uuid}, author => 'user', content => $2{json})
"""


def test_a_driver_that_sends_strings_as_varchar_needs_the_casts(db: Database) -> None:
    """JDBC does."""
    with db.as_app() as app:
        session_uid = value(app, "select session_uid from durable.open_session(app_name => 'support')")
    with refused("42883"), db.as_app() as app:
        app.execute(TYPED.format(uuid="", json="").encode())
    with db.as_app() as app:
        app.execute(TYPED.format(uuid="::uuid", json="::json").encode())
        assert value(app, f'execute append (\'{session_uid}\', \'{{"role": "user", "content": "hi"}}\')') == "appended"


def test_psycopg_sends_json_and_not_jsonb(db: Database) -> None:
    with db.as_app() as app:
        session_uid = value(app, "select session_uid from durable.open_session(app_name => 'support')")
    call = "select outcome from durable.append_event(session_uid => %s, author => 'agent', content => %s)"
    with db.as_app() as app:
        assert value(app, call, session_uid, Json({"role": "assistant", "content": "hi"})) == "appended"
    with refused("42883"), db.as_app() as app:
        app.execute(call.encode(), (session_uid, Jsonb({"role": "assistant"})))
