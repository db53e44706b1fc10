"""set_tool: only a person may loosen what a tool is like, and says why."""

import pytest

from tests.support.calls import declare, set_tool
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored

CLASSES = ("read_only", "keyed", "effect")


def classes(db: Rented) -> dict[str, str]:
    return {row["tool"]: row["replay_class"] for row in stored(db, "tools")}


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


@pytest.mark.parametrize("reason", [None, "", "  ", "x" * 2001])
def test_a_person_gives_a_reason(db: Rented, reason: str | None) -> None:
    with nothing_written(db), refused("22W03", match="reason"), db.as_operator() as operator:
        set_tool(operator, reason=reason)


@pytest.mark.parametrize("replay_class", [None, "", "safe", "READ_ONLY"])
def test_a_class_that_is_none_is_refused(db: Rented, replay_class: str | None) -> None:
    with nothing_written(db), refused("22W03", match="replay_class is"), db.as_operator() as operator:
        set_tool(operator, replay_class=replay_class)


@pytest.mark.parametrize("login", ["app", "maintainer", "auditor"])
def test_nobody_else_says_what_a_tool_is_like(db: Rented, login: str) -> None:
    connected = {"app": db.as_app, "maintainer": db.as_maintainer, "auditor": db.as_auditor}[login]
    with nothing_written(db), refused("42501"), connected() as connection:
        declare(connection, {"t": "read_only"})
    with nothing_written(db), refused("42501"), connected() as connection:
        set_tool(connection)
