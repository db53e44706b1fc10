"""A user's tests meet the real rules, each in a database of its own."""

import importlib.metadata
import sys

from tests.plugin.projects import Project, left_on
from tests.support.servers import Server

AGENT = """
def handle(me, message):
    session = me.open_session("support", "s-1")
    me.append_event(session, "user", {"role": "user", "content": message}, invocation_id="inv-1")
    run = me.start_run(session, "inv-1")
    if run.outcome == "started":
        call = {"role": "assistant", "tool_calls": [{"function": {"name": "refund"}}]}
        me.append_event(session, "agent", call, invocation_id="inv-1", event_id="refund-7", attempt=run.attempt)
        me.settle_run(run, "succeeded")
    return session
"""
THREE_LINES = """
import my_agent

def test_refunds_once(as_app):
    me = as_app("acme", "user-7")
    my_agent.handle(me, "refund order 7")
"""


def test_it_is_registered_with_pytest() -> None:
    (found,) = importlib.metadata.entry_points(group="pytest11", name="durable_pg")
    assert found.value == "durable_pg.pytest_plugin"


def test_three_lines_are_a_test(project: Project) -> None:
    project.write("my_agent.py", AGENT)
    project.write("test_mine.py", THREE_LINES)
    assert project.run().counts() == {"passed": 1}


def test_the_rules_hold(project: Project) -> None:
    project.write("my_agent.py", AGENT)
    project.write(
        "test_mine.py",
        """
import my_agent, psycopg, pytest
from durable_pg import errors

def test_a_repeated_turn_is_recorded_once(as_app):
    me = as_app("acme", "user-7")
    first, again = (my_agent.handle(me, "refund order 7") for _ in range(2))
    assert first.session_uid == again.session_uid
    assert [event.author for event in me.read_events(first)] == ["user", "agent"]
    (run,) = me.list_runs()
    assert run.tools_executed == ["refund"]
    said = {"role": "user", "content": "refund order 7"}
    assert me.append_event(first, "user", said, invocation_id="inv-1").outcome == "duplicate"

def test_another_user_and_another_tenant_see_nothing(as_app):
    me = as_app("acme", "user-7")
    session = my_agent.handle(me, "refund order 7")
    assert [found.session_uid for found in me.list_sessions()] == [session.session_uid]
    for other in (as_app("acme", "user-8"), as_app("globex", "user-7")):
        assert other.list_sessions() == []
        with pytest.raises(errors.SessionNotFound):
            other.read_events(session)

def test_what_is_recorded_stays(as_app, durable_db):
    my_agent.handle(as_app("acme", "user-7"), "refund order 7")
    app = durable_db.connect("app")
    with pytest.raises(psycopg.errors.InsufficientPrivilege), app.transaction():
        app.execute("select durable.act_as('acme', 'user-7')")
        app.execute("delete from durable.events")
    owner = durable_db.connect("mig")
    with pytest.raises(psycopg.Error) as refused, owner.transaction():
        owner.execute("set local role durable_owner")
        owner.execute("set local durable.tenant_id = 'acme'")
        owner.execute("set local durable.user_id = 'user-7'")
        owner.execute("truncate durable.events")
    assert refused.value.sqlstate == "23W01"
    count = durable_db.connect("auditor").execute("select count(*) from durable.events").fetchone()
    assert count == (2,)

def test_an_operator_reads_one_tenant_and_records_nothing(as_app, as_operator):
    session = my_agent.handle(as_app("acme", "user-7"), "refund order 7")
    on_call = as_operator("acme", "on-call")
    assert [event.author for event in on_call.read_events(session)] == ["user", "agent"]
    assert as_operator("globex", "on-call").list_sessions() == []
    with pytest.raises(errors.DurableError) as refused:
        on_call.append_event(session, "operator", "hello")
    assert refused.value.sqlstate == "42501"
    assert len(on_call.read_events(session)) == 2
""",
    )
    done = project.run()
    assert done.counts() == {"passed": 4}, done.shown


def test_nobody_is_a_superuser_and_each_login_holds_its_own_role(project: Project) -> None:
    project.write(
        "test_mine.py",
        """
import pytest

HELD = "select count(*) filter (where rolsuper or rolbypassrls or rolcreaterole) from pg_roles where rolname = user"

@pytest.mark.parametrize("login", ["app", "operator", "maintainer", "auditor"])
def test_it_holds_one_front_role(durable_db, login):
    ours = "select string_agg(rolname, ' ') from pg_roles where rolname ~ '^durable_[a-z]+$'"
    query = f"{ours} and pg_has_role(oid, 'member')"
    connection = durable_db.connect(login)
    assert connection.execute(query).fetchone() == (f"durable_{login}",)
    assert connection.execute(HELD).fetchone() == (0,)

def test_mig_may_become_the_owner(durable_db):
    connection = durable_db.connect("mig")
    assert connection.execute(HELD).fetchone() == (0,)
    connection.execute("set role durable_owner")

def test_an_unknown_login_is_named(durable_db):
    with pytest.raises(ValueError, match="'owner', only app, operator, maintainer, auditor, mig"):
        durable_db.url("owner")
""",
    )
    done = project.run()
    assert done.counts() == {"passed": 6}, done.shown


def test_two_tests_do_not_see_each_other_and_leave_nothing(project: Project, server: Server) -> None:
    project.write(
        "test_mine.py",
        """
import pytest
from noting import note

@pytest.mark.parametrize("n", range(3))
def test_it_is_alone(as_app, durable_db, n):
    note(durable_db)
    me = as_app("acme", "user-7")
    assert me.list_sessions() == []
    assert me.open_session("support", "s-1").outcome == "created"
    assert durable_db.connect("auditor").execute("select count(*) from durable.sessions").fetchone() == (1,)
""",
    )
    done = project.run()
    assert done.counts() == {"passed": 3}, done.shown
    assert len(set(project.names())) == 3
    assert left_on(server, project.names()) == []
    assert project.directories() == []


def test_an_agent_in_another_process_is_given_the_url(project: Project) -> None:
    project.write(
        "service.py",
        """
import os
from durable_pg import Durable

with Durable.from_url(os.environ["DATABASE_URL"]) as durable:
    durable.act_as("acme", "user-7").open_session("support", "s-1")
""",
    )
    project.write(
        "test_mine.py",
        f"""
import subprocess

def test_it_records(as_app, durable_db, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", durable_db.app_url)
    subprocess.run([{sys.executable!r}, "service.py"], check=True)
    assert [session.session_id for session in as_app("acme", "user-7").list_sessions()] == ["s-1"]
""",
    )
    done = project.run()
    assert done.counts() == {"passed": 1}, done.shown


def test_a_connected_agent_does_not_keep_its_database(project: Project, server: Server) -> None:
    project.write(
        "test_mine.py",
        """
import psycopg
from noting import note

kept = []

def test_it_stays_connected(durable_db):
    note(durable_db)
    kept.append(psycopg.connect(durable_db.app_url))

def test_it_was_disconnected():
    with kept[0] as connection:
        try:
            connection.execute("select 1")
        except psycopg.OperationalError:
            return
    raise AssertionError("the database is still there")
""",
    )
    done = project.run()
    assert done.counts() == {"passed": 2}, done.shown
    assert left_on(server, project.names()) == []


def test_the_fixtures_explain_themselves(project: Project) -> None:
    """Without -v pytest shows the first paragraph of a docstring."""
    shown = project.run("--fixtures").shown
    assert 'me = as_app("acme", "user-7") is the durable_pg.Identity' in shown
    assert "durable_db.app_url: for the agent under test" in shown
    assert 'as_operator("acme", "on-call") is a durable_pg.Identity' in shown
    assert "_durable_pg_server" not in shown
