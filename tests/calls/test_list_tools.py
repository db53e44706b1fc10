"""list_tools shows what is stored of an app's tools."""

from tests.support.calls import call_all, declare
from tests.support.rented import Rented


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
