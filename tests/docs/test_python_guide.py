"""The snippets of docs/python.md run, one after the other."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import durable_pg
from durable_pg import errors
from tests.support.harness import Database, rows, value

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text("utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
WAYS, TOGETHER, ASYNC, RUN, TOOL, UPGRADE, FAULTS, JSON, TABLES = SNIPPETS
URL = "postgresql://shop_app@db.internal/shop"
SETTING = """
import os, sqlalchemy
from durable_pg import Durable, errors
engine = sqlalchemy.create_engine(os.environ["ENGINE_URL"])
db = Durable.from_url()
db.open()
me = db.act_as("acme", "user-7")
session = me.open_session("support", "s-1")
"""


def run(db: Database, script: str) -> str:
    url = db.url("app")
    environment = {**os.environ, "DATABASE_URL": url, "ENGINE_URL": url.replace("postgresql:", "postgresql+psycopg:")}
    environment.pop("DURABLE_PG_URL", None)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_three_ways_are_ways(db: Database) -> None:
    assert run(db, WAYS.replace(URL, db.url("app"))) == "[]\n" * 3


def test_rows_of_the_caller_and_an_event_are_committed_together(db: Database) -> None:
    with db.connect("mig") as mig:
        mig.execute("create table public.orders (name text)")
        mig.execute("grant insert on public.orders to app")
    run(db, SETTING + TOGETHER)
    with db.superuser() as root:
        assert value(root, "select count(*) from public.orders") == 1
        assert value(root, "select count(*) from durable.events") == 1


def test_the_async_snippet_appends(db: Database) -> None:
    assert run(db, ASYNC) == "1\n"


def test_a_run_is_executed_and_a_declared_tool_called(db: Database) -> None:
    assert run(db, SETTING + RUN + TOOL) == "1 False 0 None\n8\n"
    runs = [(row["invocation_id"], row["status"], row["result"]) for row in rows(db, "runs")]
    assert sorted(runs) == [("inv-1", "succeeded", {"text": "done"}), ("inv-2", "succeeded", None)]
    assert [row["status"] for row in rows(db, "effects")] == ["succeeded"] * 2


def test_a_checkpoint_is_upgraded(db: Database) -> None:
    crashed = RUN.replace("    run.result = ", "    raise SystemExit(0)\n    run.result = ")
    again = SETTING + UPGRADE + "with me.run(session, 'inv-1') as run:\n    print(run.attempt, run.state['currency'])\n"
    run(db, SETTING + crashed)
    assert run(db, again) == "2 EUR\n"


def test_a_fault_that_may_be_repeated_is(db: Database) -> None:
    assert run(db, SETTING + FAULTS + "print(run.outcome)") == "started\n"


def test_a_decimal_is_refused_by_its_path(db: Database) -> None:
    shown = run(db, SETTING + JSON)
    assert "content.parts[0].price" in shown
    assert "22W02" in shown


def test_the_tables_show_a_user_s_own_runs(db: Database) -> None:
    assert run(db, SETTING + "me.start_run(session, 'inv-1')\n" + TABLES) == "('running', None)\n"


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`", PAGE))))
def test_every_class_that_the_page_names_is_there(name: str) -> None:
    assert hasattr(errors, name) or hasattr(durable_pg, name)
