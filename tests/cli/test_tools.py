"""durable-pg tools sync and list: what a module declares gets into the database, and nothing is loosened by it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.calls import call
from tests.support.cli import ROOT, durable_pg, durable_pg_process
from tests.support.harness import Database, rows

MODULE = """
from durable_pg import durable_tool

@durable_tool(replay_class="keyed", intent=lambda args: args["order"])
def refund(order): ...

@durable_tool(replay_class="read_only")
async def search(words): ...

@durable_tool("send_mail")
def mail(to): ...
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop_tools.py").write_text(MODULE, "utf-8")
    (tmp_path / "empty_tools.py").write_text("", "utf-8")
    (tmp_path / "broken_tools.py").write_text("1 / 0", "utf-8")
    (tmp_path / "double_tools.py").write_text(MODULE + "\n@durable_tool('refund')\ndef other(): ...\n", "utf-8")
    return tmp_path


def sync(db: Database, shop: Path, *options: str, module: str = "shop_tools", login: str = "operator") -> Any:
    command = ("tools", "sync", module, "--app", "support", "--tenant", "T1", "--url", db.url(login), *options)
    return durable_pg_process(*command, extra={"PYTHONPATH": f"{ROOT}:{shop}"})


def stored(db: Database) -> dict[str, str]:
    return {row["tool"]: row["replay_class"] for row in rows(db, "tools")}


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return {tool["tool"]: tool["outcome"] for tool in json.loads(done.stdout)["tools"]}


def test_sync_stores_what_the_decorators_declare(db: Database, shop: Path) -> None:
    done = sync(db, shop, "--as", "deploy")
    assert (done.returncode, done.stderr) == (0, "")
    assert stored(db) == {"refund": "keyed", "search": "read_only", "send_mail": "effect"}
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["keyed", "written", "support", "refund"] in lines
    assert {(row["login"], row["acted_by"]) for row in rows(db, "audit_log")} == {("operator", "deploy")}


def test_a_second_time_nothing_changes(db: Database, shop: Path) -> None:
    sync(db, shop)
    before = rows(db, "tools"), rows(db, "audit_log")
    assert set(outcomes(sync(db, shop, "--json")).values()) == {"unchanged"}
    assert (rows(db, "tools"), rows(db, "audit_log")) == before


def test_a_stricter_class_is_kept_and_said(db: Database, shop: Path) -> None:
    with db.as_operator() as operator:
        tool = {"app_name": "support", "tool": "search", "replay_class": "effect", "reason": "it books"}
        call(operator, "set_tool", **tool)
    assert "search stays effect, stricter than read_only" in sync(db, shop).stderr
    assert outcomes(sync(db, shop, "--json"))["search"] == "kept"
    assert stored(db)["search"] == "effect"


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("empty_tools", "module empty_tools has no tools"),
        ("broken_tools", "module broken_tools can't be imported: ZeroDivisionError"),
        ("no_such_module", "module no_such_module can't be imported: ModuleNotFoundError"),
        ("double_tools", "two tools of double_tools are called refund"),
    ],
)
def test_a_module_that_declares_nothing_clear_is_exit_2(db: Database, shop: Path, module: str, words: str) -> None:
    done = sync(db, shop, module=module)
    assert (done.returncode, done.stdout, stored(db)) == (2, "", {})
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("login", ["app", "auditor"])
def test_only_an_operator_stores_tools(db: Database, shop: Path, login: str) -> None:
    options = ("--user", "U1") if login == "app" else ()
    done = sync(db, shop, *options, login=login)
    assert (done.returncode, done.stdout, stored(db)) == (2, "", {})
    assert "only an operator says what a tool is like" in done.stderr


@pytest.mark.parametrize(
    ("login", "options"),
    [("app", ("--tenant", "T1", "--user", "U1")), ("operator", ("--tenant", "T1")), ("auditor", ())],
)
def test_list_shows_what_is_stored(db: Database, shop: Path, login: str, options: tuple[str, ...]) -> None:
    sync(db, shop)
    done = durable_pg("tools", "list", "--url", db.url(login), "--json", *options)
    assert {tool["tool"]: tool["replay_class"] for tool in json.loads(done.stdout)["tools"]} == stored(db)
    assert "refund" in durable_pg("tools", "list", "--url", db.url(login), *options).stdout
    none = durable_pg("tools", "list", "--url", db.url(login), "--app", "sales", *options)
    assert (none.returncode, none.stdout) == (0, "")
    assert "each one counts as an effect" in none.stderr
