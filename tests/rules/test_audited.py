"""Rule audited: an act of operator or maintainer, and what an app resolves, leaves a row; nobody forges or omits it."""

from typing import Any

import psycopg
import pytest

from tests.rules.roles import BACK, FRONT, acting
from tests.rules.rows import audit_row, insert
from tests.rules.world import World, unchanged
from tests.support.harness import Database, refused, rows

ACTS = {
    # cancel_run and resolve_effect with the half of them that acts for an operator.
    "durable_operator": {
        *("cancel_run", "cancel_tenant_run", "resolve_effect", "resolve_tenant_effect", "declare_tools", "set_tool"),
    },
    "durable_maintainer": {"reap_runs"},
}
# VOLATILE because they ask the clock; they write nothing.
CLOCKED = {"list_effects", "list_resumable", "effect_as_row", "effect_status"}


@pytest.mark.parametrize("role", BACK)
def test_an_act_is_logged(db: Database, role: str) -> None:
    World.of(db)
    acted_by = None if role == "janitor" else "on-call"
    before = len(rows(db, "audit_log"))
    try:
        with acting(db, role, "T1", "on-call") as connection:
            insert(connection, "audit_log", audit_row("T1", acted_by=acted_by))
    except psycopg.errors.InsufficientPrivilege as error:
        raise AssertionError("an act was refused its audit row") from error
    assert len(rows(db, "audit_log")) == before + 1


def test_the_engine_logs_nothing_but_what_an_app_resolves(db: Database) -> None:
    World.of(db)
    with unchanged(db), refused("42501"), db.as_engine("T1", "on-call") as engine:
        insert(engine, "audit_log", audit_row("T1", action="cancel_run"))


@pytest.mark.parametrize("role", FRONT)
def test_no_front_role_logs(db: Database, role: str) -> None:
    World.of(db)
    with unchanged(db), refused("42501"), acting(db, role) as connection:
        insert(connection, "audit_log", audit_row("T1", acted_by="U1"))


@pytest.mark.parametrize("role", BACK)
@pytest.mark.parametrize(
    "forged",
    [
        {"acted_at": "2000-01-01"},
        {"login": "somebody"},
        {"audit_uid": "00000000-0000-7000-8000-000000000000"},
    ],
    ids=lambda forged: next(iter(forged)),
)
def test_the_stamp_is_the_database_s(db: Database, role: str, forged: dict[str, Any]) -> None:
    World.of(db)
    acted_by = None if role == "janitor" else "on-call"
    with unchanged(db), refused("42501"), acting(db, role, "T1", "on-call") as connection:
        insert(connection, "audit_log", audit_row("T1", acted_by=acted_by, **forged))


def test_the_stamp_names_login_and_time(db: Database) -> None:
    World.of(db)
    for row in rows(db, "audit_log"):
        # The tests' own way to the back roles is the migration login; the app resolved an effect of each person's.
        assert row["login"] == ("app" if row["subject_uid"] else "mig")
        assert row["acted_at"] is not None


@pytest.mark.parametrize("role", BACK)
def test_who_logs_reads_and_changes_nothing(db: Database, role: str) -> None:
    World.of(db)
    acted_by = None if role == "janitor" else "on-call"
    with unchanged(db), acting(db, role, "T1", "on-call") as connection:
        for statement in (
            "select reason from durable.audit_log",
            "update durable.audit_log set reason = 'forged'",
            "delete from durable.audit_log",
            "truncate durable.audit_log",
        ):
            with refused("42501"), connection.transaction():
                connection.execute(statement.encode())
        with refused("42501"), connection.transaction():
            row = audit_row("T1", acted_by=acted_by)
            names = ", ".join(row)
            given = ", ".join(f"%({name})s" for name in row)
            upsert = f"""
                insert into durable.audit_log ({names}) values ({given})
                on conflict (tenant_id, audit_uid) do update set reason = excluded.reason
            """
            connection.execute(upsert.encode(), row)


@pytest.mark.parametrize("reason", ["", " ", "   "])
def test_a_reason_is_given(db: Database, reason: str) -> None:
    World.of(db)
    with unchanged(db), refused("23514", constraint="audit_log_reason_is_given"), db.as_steward("T1") as steward:
        insert(steward, "audit_log", audit_row("T1", reason=reason))


@pytest.mark.parametrize(("role", "acts"), ACTS.items())
def test_operators_and_maintainers_have_no_other_act(db: Database, role: str, acts: set[str]) -> None:
    """Each act has its own test in test_acts_audited; list_resumable and list_effects only read, by the clock."""
    with db.superuser() as root:
        writing = root.execute(
            """
            select proname from pg_proc
            where pronamespace = 'durable'::regnamespace
                and has_function_privilege(%s, oid, 'execute')
                and (prosecdef or provolatile = 'v')
            """,
            (role,),
        ).fetchall()
    assert {row["proname"] for row in writing} - {"act_as", *CLOCKED} == acts
