"""Rule audited, act by act: one row in the transaction of the act, and none when nothing was changed."""

from typing import Any

import pytest
from psycopg.rows import DictRow

from tests.rules.roles import acting
from tests.rules.world import World, expire, unchanged
from tests.support.calls import call, call_all
from tests.support.harness import Connection, Database, refused, rows

SEEN = '{"channel": "bank", "seen": "no transfer", "who": "Ada"}'


def logged(db: Database, before: list[DictRow]) -> DictRow:
    """Return the one row that was added, without its uid and time."""
    known = {row["audit_uid"] for row in before}
    (added,) = [row for row in rows(db, "audit_log") if row["audit_uid"] not in known]
    return {name: added[name] for name in added if name not in {"audit_uid", "acted_at"}}


@pytest.mark.parametrize(("role", "user"), [("app", "U1"), ("operator", "on-call")])
def test_who_resolves_an_effect_is_logged_with_the_evidence(db: Database, role: str, user: str) -> None:
    mine = World.of(db).mine
    before = rows(db, "audit_log")
    with acting(db, role, "T1", user) as connection:
        call(connection, "resolve_effect", effect_uid=mine.unverified, status="failed", evidence=SEEN)
    detail = {"status": "failed", "user_id": "U1", "evidence": {"channel": "bank", "seen": "no transfer", "who": "Ada"}}
    assert logged(db, before) == {
        "tenant_id": "T1",
        "login": role,
        "acted_by": user,
        "reason": "no transfer",
        "detail": detail,
        "action": "resolve_effect",
        "subject_kind": "effect",
        "subject_uid": mine.unverified,
    }


def test_an_operator_who_calls_a_run_off_is_logged(db: Database) -> None:
    neighbour = World.of(db).neighbour
    before = rows(db, "audit_log")
    with db.as_operator() as operator:
        call(operator, "cancel_run", run_uid=neighbour.running, reason="asked by phone")
    assert logged(db, before) == {
        "tenant_id": "T1",
        "login": "operator",
        "acted_by": "on-call",
        "reason": "asked by phone",
        "detail": {},
        "action": "cancel_run",
        "subject_kind": "run",
        "subject_uid": neighbour.running,
    }


def test_a_maintainer_who_reaps_a_run_is_logged(db: Database) -> None:
    mine = World.of(db).mine
    expire(db, mine.running)
    before = rows(db, "audit_log")
    with db.as_maintainer() as maintainer:
        assert tuple(call(maintainer, "reap_runs").values()) == (1, 1, 0)
    found = logged(db, before)
    detail = found.pop("detail")
    assert (detail["attempt"], detail["effects_unverified"]) == (1, 1)
    assert found == {
        "tenant_id": "T1",
        "login": "maintainer",
        "acted_by": None,
        "reason": "its lease ran out",
        "action": "reap_runs",
        "subject_kind": "run",
        "subject_uid": mine.running,
    }


@pytest.mark.parametrize(
    ("function", "arguments", "reason", "before_class"),
    [
        ("declare_tools", {"tools": '{"mail": "keyed"}'}, "declared by the program", None),
        ("declare_tools", {"tools": '{"search": "effect"}'}, "declared by the program", "read_only"),
        (
            "set_tool",
            {"tool": "search", "replay_class": "keyed", "reason": "it has a key"},
            "it has a key",
            "read_only",
        ),
    ],
)
def test_an_operator_who_says_what_a_tool_is_is_logged(
    db: Database, function: str, arguments: dict[str, Any], reason: str, before_class: str | None
) -> None:
    World.of(db)
    before = rows(db, "audit_log")
    with db.as_operator() as operator:
        written = call(operator, function, app_name="support", **arguments)
    assert written["outcome"] == "written"
    found = logged(db, before)
    assert found.pop("detail") == {
        "app_name": "support",
        "tool": written["tool"],
        "replay_class": written["replay_class"],
        "before": before_class,
    }
    assert found == {
        "tenant_id": "T1",
        "login": "operator",
        "acted_by": "on-call",
        "reason": reason,
        "action": "write_tool",
        "subject_kind": "tool",
        "subject_uid": None,
    }


def test_every_tool_of_a_declaration_has_its_row(db: Database) -> None:
    World.of(db)
    before = rows(db, "audit_log")
    with db.as_operator() as operator:
        tools = '{"a": "keyed", "b": "effect", "search": "read_only"}'
        outcomes = [row["outcome"] for row in call_all(operator, "declare_tools", app_name="support", tools=tools)]
    assert outcomes == ["written", "written", "unchanged"]
    known = {row["audit_uid"] for row in before}
    assert sorted(row["detail"]["tool"] for row in rows(db, "audit_log") if row["audit_uid"] not in known) == ["a", "b"]


def test_an_act_that_is_rolled_back_is_not_logged(db: Database) -> None:
    mine = World.of(db).mine
    expire(db, mine.running)
    with unchanged(db):
        with db.as_operator() as operator:
            call(operator, "set_tool", app_name="support", tool="mail", replay_class="keyed", reason="x")
            call(operator, "resolve_effect", effect_uid=mine.unverified, status="failed", evidence=SEEN)
            call(operator, "cancel_run", run_uid=mine.running, reason="x")
            operator.rollback()
        with db.as_maintainer() as maintainer:
            call(maintainer, "reap_runs")
            maintainer.rollback()


def test_an_act_that_is_not_logged_did_not_happen(db: Database) -> None:
    """The log's own guards can refuse the row: then the act goes with it."""
    mine = World.of(db).mine
    expire(db, mine.running)
    with db.superuser() as root:
        root.execute("alter table durable.audit_log add constraint full_up check (false) not valid")
    with unchanged(db):
        for act in (resolve, cancel, retool):
            with refused("23514", constraint="full_up"), db.as_operator() as operator:
                act(operator, mine)
        with refused("23514", constraint="full_up"), db.as_app() as app:
            resolve(app, mine)
        with refused("23514", constraint="full_up"), db.as_maintainer() as maintainer:
            call(maintainer, "reap_runs")


def test_an_equal_repeat_is_not_logged_again(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_operator() as operator:
        for act in (resolve, retool, cancel):
            act(operator, mine)
    with unchanged(db):
        with db.as_operator() as operator:
            outcomes = [act(operator, mine)["outcome"] for act in (resolve, retool, cancel)]
        with db.as_operator() as operator:
            again = call(operator, "declare_tools", app_name="support", tools='{"mail": "read_only"}')
        with db.as_maintainer() as maintainer:
            assert tuple(call(maintainer, "reap_runs").values()) == (0, 0, 0)
    assert [*outcomes, again["outcome"]] == ["already_resolved", "unchanged", "already_settled", "kept"]


def test_a_user_s_own_cancellation_is_no_operator_s_act(db: Database) -> None:
    mine = World.of(db).mine
    before = rows(db, "audit_log")
    with db.as_app() as app:
        cancel(app, mine)
    assert rows(db, "audit_log") == before


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        *((act, reason) for act in ("cancel_run", "set_tool", "resolve_effect") for reason in (None, "", "  ")),
        # What was seen may be long.
        *((act, "x" * 2001) for act in ("cancel_run", "set_tool")),
    ],
)
def test_an_act_without_a_reason_is_refused(db: Database, act: str, reason: str | None) -> None:
    mine = World.of(db).mine
    said: dict[str, dict[str, Any]] = {
        "cancel_run": {"run_uid": mine.running, "reason": reason},
        "set_tool": {"app_name": "support", "tool": "mail", "replay_class": "keyed", "reason": reason},
        "resolve_effect": {"effect_uid": mine.unverified, "status": "failed", "evidence": evidence(reason)},
    }
    with unchanged(db), refused("22W03"), db.as_operator() as operator:
        call(operator, act, **said[act])


def evidence(seen: str | None) -> str | None:
    return None if seen is None else f'{{"channel": "bank", "seen": "{seen}"}}'


def resolve(connection: Connection, mine: Any) -> DictRow:
    return call(connection, "resolve_effect", effect_uid=mine.unverified, status="failed", evidence=SEEN)


def cancel(connection: Connection, mine: Any) -> DictRow:
    return call(connection, "cancel_run", run_uid=mine.running, reason="called off")


def retool(connection: Connection, mine: Any) -> DictRow:
    return call(connection, "set_tool", app_name="support", tool="mail", replay_class="effect", reason="it pays")
