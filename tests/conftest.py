"""Fixtures: one server a run, one migrated template a worker, one database a test."""

import os
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from psycopg import sql
from pytest_postgresql import factories
from pytest_postgresql.executors import NoopExecutor

from durable_pg import migrate
from tests.support import collection, servers
from tests.support.harness import PROCESS, Database, new_name
from tests.support.limits import pytest_timeout_set_timer
from tests.support.servers import Server

__all__ = ["pytest_timeout_set_timer"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pg", type=int, metavar="MAJOR", help="run on this Postgres in a container (needs Docker)")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the server before xdist starts its workers, which find its address in their environment."""
    config = session.config
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.add_cleanup(servers.start(config.getoption("--pg")))
        _server().provision()
        _make_roles(_server())


def _make_roles(server: Server) -> None:
    """Let `mig` make durable_pg's roles, before a test of the plugin may have them made by a login of its own."""
    name = f"durable_test_roles_{PROCESS}"
    with server.alone() as root:
        root.execute(f"create database {name} owner mig template template0 encoding 'UTF8'".encode())
        try:
            migrate.upgrade(server.url(name, "mig"))
        finally:
            root.execute(f"drop database {name} with (force)".encode())


def pytest_report_header() -> str:
    return f"postgres: {os.environ.get(servers.URL, 'not started')}"


# What starts servers of its own, needs none, shows something of the client that no version of Postgres has a say in, or
# proves the tests themselves.
ONCE = (
    "catalog/test_lint_sql",
    "cli/test_local_server",
    "client/test_bad_input",
    "client/test_json_codec",
    "client/test_json_property",
    "client/test_restarted",
    "client/test_typing",
    "crash/",
    "demo/",
    "rules/test_guards_bite",
    "packaging/",
    "plugin/",
)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    collection.keep(config, items)  # as it is before anything shuffles it
    here = Path(__file__).parent
    for item in items:
        # A generated twin sends the same statements as the test it is made of.
        is_twin = item.path.with_name(f"{item.path.stem}_async.py").exists()
        if is_twin or item.path.relative_to(here).as_posix().startswith(ONCE):
            item.add_marker("once")
    return (yield)


def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker("pg")
    if marker is not None:
        (condition,) = marker.args
        if Version(str(_server().major)) not in SpecifierSet(condition):
            pytest.skip(f"Postgres {_server().major} is not {condition}")


@cache
def _server() -> Server:
    return Server.at(os.environ[servers.URL])


@pytest.fixture(scope="session")
def server() -> Server:
    return _server()


def _migrate_as_mig(*, dbname: str, **_: object) -> None:
    """Make the template as a deployment would: the database is `mig`'s, and `mig` is no superuser."""
    server = _server()
    with server.alone() as root:
        root.execute(sql.SQL("alter database {} owner to mig").format(sql.Identifier(dbname)))
        url = server.url(dbname, "mig")
        migrate.upgrade(url, logins={kind: kind for kind in ("app", "operator", "maintainer", "auditor")})
        migrate.upgrade(url, logins={"app": "app2"})


# One template a worker, since xdist's workers share the server but no fixtures.
migrated_template = factories.postgresql_noproc(
    depends_on="server", dbname=f"durable_test_{PROCESS}", load=[_migrate_as_mig]
)


@pytest.fixture
def db(server: Server, migrated_template: NoopExecutor) -> Iterator[Database]:
    """A migrated database of this test's own."""
    database = Database(server, migrated_template.template_dbname).clone()
    yield database
    database.drop()


@pytest.fixture(scope="module")
def module_db(server: Server, migrated_template: NoopExecutor) -> Iterator[Database]:
    """A migrated database for all tests of a module, which leave its schema alone and don't count on being alone."""
    database = Database(server, migrated_template.template_dbname).clone()
    yield database
    database.drop()


@pytest.fixture
def empty_database(server: Server) -> Iterator[Database]:
    """A database of `mig` with nothing in it."""
    database = Database(server, new_name())
    with server.connect() as root:
        root.execute(
            sql.SQL("create database {} owner mig template template0 encoding 'UTF8'").format(
                sql.Identifier(database.name)
            )
        )
    yield database
    database.drop()
