"""What an app's tools are like is said by operators: a program may tighten a class, only a person may loosen it."""

from typing import Any

import pytest

from tests.support.calls import call, call_all
from tests.support.harness import Connection, refused
from tests.support.rented import Rented, nothing_written, stored

CLASSES = ("read_only", "keyed", "effect")


def declare(operator: Connection, tools: Any, app_name: str | None = "support") -> dict[str, str]:
    return {row["tool"]: row["outcome"] for row in call_all(operator, "declare_tools", app_name=app_name, tools=tools)}


def set_tool(operator: Connection, tool: str = "lookup", replay_class: Any = "read_only", **more: Any) -> Any:
    given = {"app_name": "support", "tool": tool, "replay_class": replay_class, "reason": "it only reads", **more}
    return call(operator, "set_tool", **given)


def classes(db: Rented) -> dict[str, str]:
    return {row["tool"]: row["replay_class"] for row in stored(db, "tools")}


def test_declared_tools_are_stored_and_listed(db: Rented) -> None:
    with db.as_operator() as operator:
        told = declare(operator, {"mail": "effect", "lookup": "read_only", "charge": "keyed"})
    assert told == {"charge": "written", "lookup": "written", "mail": "written"}
    with db.as_app() as app:
        listed = call_all(app, "list_tools")
    assert [(row["tool"], row["replay_class"], row["outcome"]) for row in listed] == [
        ("charge", "keyed", "stored"),
        ("lookup", "read_only", "stored"),
        ("mail", "effect", "stored"),
    ]


@pytest.mark.parametrize("stored_class", CLASSES)
@pytest.mark.parametrize("declared", CLASSES)
def test_of_stored_and_declared_the_stricter_wins(db: Rented, stored_class: str, declared: str) -> None:
    with db.as_operator() as operator:
        set_tool(operator, "t", stored_class)
        (outcome,) = declare(operator, {"t": declared}).values()
    stricter = max(stored_class, declared, key=CLASSES.index)
    assert classes(db) == {"t": stricter}
    assert outcome == ("unchanged" if declared == stored_class else "kept" if stricter == stored_class else "written")


@pytest.mark.parametrize("before", CLASSES)
@pytest.mark.parametrize("after", CLASSES)
def test_a_person_sets_any_class(db: Rented, before: str, after: str) -> None:
    with db.as_operator() as operator:
        set_tool(operator, "t", before)
        told = set_tool(operator, "t", after)
    assert (told["replay_class"], told["outcome"]) == (after, "unchanged" if before == after else "written")
    assert classes(db) == {"t": after}


def test_each_change_leaves_an_audit_row_and_nothing_else_does(db: Rented) -> None:
    with db.as_operator() as operator:
        set_tool(operator, "t", "keyed", reason="the provider dedupes")
        declare(operator, {"t": "read_only"})
        declare(operator, {"t": "keyed"})
        declare(operator, {"t": "effect"})
    with db.as_operator() as operator:
        set_tool(operator, "t", "effect")
    rows = sorted(stored(db, "audit_log"), key=lambda row: row["acted_at"])
    assert [(row["action"], row["acted_by"], row["login"], row["reason"]) for row in rows] == [
        ("write_tool", "on-call", "operator", "the provider dedupes"),
        ("write_tool", "on-call", "operator", "declared by the program"),
    ]
    assert [row["detail"] for row in rows] == [
        {"app_name": "support", "tool": "t", "replay_class": "keyed", "before": None},
        {"app_name": "support", "tool": "t", "replay_class": "effect", "before": "keyed"},
    ]


def test_tools_are_the_tenants_and_the_apps(db: Rented) -> None:
    with db.as_operator() as operator:
        declare(operator, {"t": "keyed"})
        declare(operator, {"t": "effect"}, "sales")
    with db.as_operator("T2") as operator:
        declare(operator, {"t": "read_only"})
        assert [row["replay_class"] for row in call_all(operator, "list_tools")] == ["read_only"]
    with db.as_operator() as operator:
        assert [row["replay_class"] for row in call_all(operator, "list_tools", app_name="support")] == ["keyed"]
        assert [row["app_name"] for row in call_all(operator, "list_tools")] == ["sales", "support"]


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


@pytest.mark.parametrize("reason", [None, "", "  ", "x" * 2001])
def test_a_person_gives_a_reason(db: Rented, reason: str | None) -> None:
    with nothing_written(db), refused("22W03", match="reason"), db.as_operator() as operator:
        set_tool(operator, reason=reason)


@pytest.mark.parametrize("replay_class", [None, "", "safe", "READ_ONLY"])
def test_a_class_that_is_none_is_refused(db: Rented, replay_class: str | None) -> None:
    with nothing_written(db), refused("22W03", match="replay_class is"), db.as_operator() as operator:
        set_tool(operator, replay_class=replay_class)


def test_no_tool_and_no_declaration_write_nothing(db: Rented) -> None:
    with nothing_written(db), db.as_operator() as operator:
        assert declare(operator, {}) == {}


@pytest.mark.parametrize("login", ["app", "maintainer", "auditor"])
def test_nobody_else_says_what_a_tool_is_like(db: Rented, login: str) -> None:
    connected = {"app": db.as_app, "maintainer": db.as_maintainer, "auditor": db.as_auditor}[login]
    with nothing_written(db), refused("42501"), connected() as connection:
        declare(connection, {"t": "read_only"})
    with nothing_written(db), refused("42501"), connected() as connection:
        set_tool(connection)


def test_the_app_can_not_write_the_table(db: Rented) -> None:
    with db.as_operator() as operator:
        set_tool(operator, "t", "effect")
    with nothing_written(db), refused("42501"), db.as_app() as app:
        app.execute("update durable.tools set replay_class = 'read_only'")
