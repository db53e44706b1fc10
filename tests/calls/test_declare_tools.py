"""declare_tools: a program may tighten a class, and never loosens one."""

from typing import Any

import pytest

from tests.support.calls import declare, set_tool
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored

CLASSES = ("read_only", "keyed", "effect")


def classes(db: Rented) -> dict[str, str]:
    return {row["tool"]: row["replay_class"] for row in stored(db, "tools")}


@pytest.mark.parametrize("stored_class", CLASSES)
@pytest.mark.parametrize("declared", CLASSES)
def test_of_stored_and_declared_the_stricter_wins(db: Rented, stored_class: str, declared: str) -> None:
    with db.as_operator() as operator:
        set_tool(operator, "t", stored_class)
        (outcome,) = declare(operator, {"t": declared}).values()
    stricter = max(stored_class, declared, key=CLASSES.index)
    assert classes(db) == {"t": stricter}
    assert outcome == ("unchanged" if declared == stored_class else "kept" if stricter == stored_class else "written")


@pytest.mark.parametrize(
    ("tools", "sqlstate"),
    [
        ({"t": "effect", "u": "harmless"}, "22W03"),
        ({"t": "effect", "u": None}, "22W03"),
        ({"t": "effect", "u": 7}, "22W03"),
        ({"t": "effect", "u": {"replay_class": "keyed"}}, "22W03"),
        ({"t": "effect", "u": "EFFECT"}, "22W03"),
        ({"t": "effect", "": "effect"}, "22W01"),
        ({"t": "effect", " u": "effect"}, "22W01"),
        ({"t": "effect", "u" * 513: "effect"}, "22W01"),
        ("[]", "22W03"),
        ('"effect"', "22W03"),
    ],
)
def test_one_declaration_that_is_none_leaves_all_unwritten(db: Rented, tools: Any, sqlstate: str) -> None:
    with nothing_written(db), refused(sqlstate), db.as_operator() as operator:
        declare(operator, tools)


def test_a_name_with_nul_is_refused(db: Rented) -> None:
    with nothing_written(db), refused("22W01"), db.as_operator() as operator:
        declare(operator, {"a\0b": "effect"})


@pytest.mark.parametrize("app_name", [None, "", " support"])
def test_the_app_is_named(db: Rented, app_name: str | None) -> None:
    with nothing_written(db), refused("22W01", match="app_name"), db.as_operator() as operator:
        declare(operator, {"t": "effect"}, app_name)
    with nothing_written(db), refused("22W01", match="app_name"), db.as_operator() as operator:
        set_tool(operator, app_name=app_name)


def test_no_tool_and_no_declaration_write_nothing(db: Rented) -> None:
    with nothing_written(db), db.as_operator() as operator:
        assert declare(operator, {}) == {}


def test_the_app_can_not_write_the_table(db: Rented) -> None:
    with db.as_operator() as operator:
        set_tool(operator, "t", "effect")
    with nothing_written(db), refused("42501"), db.as_app() as app:
        app.execute("update durable.tools set replay_class = 'read_only'")
