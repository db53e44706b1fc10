"""What the README and its pages show is run as it stands there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from psycopg.types.json import Json, Jsonb

from tests.migrations.support import psql
from tests.support.harness import Database, refused, value

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
LANGUAGES = (ROOT / "docs" / "languages.md").read_text()
GUARANTEES = (ROOT / "docs" / "guarantees.md").read_text()


def _block(language: str, page: str = README) -> str:
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return str(block)


def _run_walk_through(db: Database, tmp_path: Path) -> str:
    script = tmp_path / "turn.sql"
    script.write_text(_block("sql", LANGUAGES))
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
    assert re.search(r'run \S+ settled {"text": "done"}', shown)
    with db.as_auditor() as auditor:
        assert value(auditor, "select count(*) from durable.events") == 2


PYTHON_SHOWS = """\
{'text': 'done'}
1 user []
2 support_agent ['refund']
invocation 'inv-1' was opened with another message (23W06)
"""


def _run_python(db: Database) -> str:
    environment = {**os.environ, "DATABASE_URL": db.url("app")}
    environment.pop("DURABLE_PG_URL", None)
    done = subprocess.run(
        [sys.executable, "-c", _block("python")], env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.partition("Detail:")[0]


def test_the_python_example_refunds_once_and_can_be_repeated(db: Database) -> None:
    assert _run_python(db) == "the provider refunds order 7\n" + PYTHON_SHOWS
    assert _run_python(db) == PYTHON_SHOWS
    assert len(_block("python").strip().splitlines()) <= 35


def test_the_python_example_finds_what_the_walk_through_in_sql_has_recorded(db: Database, tmp_path: Path) -> None:
    _run_walk_through(db, tmp_path)
    assert _run_python(db) == PYTHON_SHOWS
    shown = _run_walk_through(db, tmp_path)
    assert "appended" not in shown


def test_the_node_example_appends_once(db: Database, tmp_path: Path) -> None:
    """Needs node and a folder with the package pg in DURABLE_PG_NODE_MODULES."""
    modules = os.environ.get("DURABLE_PG_NODE_MODULES")
    node = shutil.which("node")
    if node is None or modules is None:
        pytest.skip("no node, or no DURABLE_PG_NODE_MODULES")
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "turn.mjs").write_text(_block("js", LANGUAGES))
    environment = {**os.environ, "DATABASE_URL": db.url("app")}
    shown = [
        subprocess.run(
            [node, "turn.mjs"], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert shown == ["appended started", "duplicate settled"]


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


# Not those of .venv or .pytest_cache.
PAGES = [
    path
    for path in sorted(ROOT.rglob("*.md"))
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text()
    linked = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    named = re.findall(r"`((?:sql|tests|docs|migrations|durable_pg|bench)/[\w./]*)`", text)
    missing = [target for target in linked if not (page.parent / target).exists()]
    assert [*missing, *(name for name in named if not (ROOT / name).exists())] == []


def test_the_readme_is_short() -> None:
    assert len(README.split()) < 1200
    assert max(map(len, README.splitlines())) <= 140


def test_every_rule_has_its_tests() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \*? ?\|[^|]*\| (`test_[^|]+) \|$", GUARANTEES, re.MULTILINE)
    assert len(rows) == 17
    tests = {name for _, cell in rows for name in re.findall(r"`(test_\w+\.py)`", cell)}
    present = {path.name for path in (ROOT / "tests/rules").glob("test_*.py")}
    assert tests == present - {"test_guards_bite.py"}
