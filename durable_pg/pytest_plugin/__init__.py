"""The pytest plugin: a migrated database for each test, and clients that act as users of it. See docs/testing.md.

def test_refunds_once(as_app):
    me = as_app("acme", "user-7")
    my_agent.handle(me, "refund order 7")
"""

# Every pytest run loads this where durable_pg is installed: what it needs is imported when a fixture is asked for.
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import psycopg

    from durable_pg import Durable, Identity
    from durable_pg.pytest_plugin.run import SharedRun
    from durable_pg.pytest_plugin.server import FixtureServer

__all__ = ["DurableDatabase"]

_HANDED_TO_WORKERS = "durable_pg_run"
_RUN = pytest.StashKey["SharedRun"]()


class DurableDatabase:
    """A migrated database of one test's own.

    Its logins: "app", "operator", "maintainer" and "auditor" hold the role of that name; "mig" migrated it and may
    become the owner. None of them is a superuser. Each has a random name on the server and a random password.
    """

    def __init__(self, server: FixtureServer, name: str) -> None:
        self.name = name
        self._server = server
        self._opened: list[psycopg.Connection[Any]] = []

    def url(self, login: str) -> str:
        """Where a login connects: a postgresql:// URL with its password. Raises ValueError for an unknown login."""
        return self._server.url(self.name, login)

    @property
    def app_url(self) -> str:
        """What the agent under test is given, by an environment variable for example: url("app")."""
        return self.url("app")

    def connect(self, login: str, **settings: Any) -> psycopg.Connection[Any]:
        """Connect with psycopg; `settings` are psycopg.connect's. Closed at the end of the test."""
        import psycopg  # noqa: PLC0415

        connection = psycopg.connect(self.url(login), **settings)
        self._opened.append(connection)
        return connection

    def _close(self) -> None:
        for connection in self._opened:
            connection.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --durable-pg-url."""
    parser.getgroup("durable_pg").addoption(
        "--durable-pg-url",
        metavar="URL",
        help="Postgres for the fixtures of durable_pg: a superuser, or a login with CREATEDB and CREATEROLE, of a"
        " throw-away server. Default: DURABLE_PG_TEST_URL, else an embedded server.",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell each xdist worker which directory the run shares."""
    node.workerinput[_HANDED_TO_WORKERS] = [os.uname().nodename, str(_run(node.config).directory)]


def _run(config: pytest.Config) -> SharedRun:
    """The test run, made when it is first asked for. Whoever made it ends it; a worker only takes part."""
    from durable_pg.pytest_plugin.errors import Unusable  # noqa: PLC0415
    from durable_pg.pytest_plugin.run import SharedRun  # noqa: PLC0415

    if _RUN not in config.stash:
        url = config.getoption("durable_pg_url")
        handed = getattr(config, "workerinput", {}).get(_HANDED_TO_WORKERS)
        if handed and handed[0] != os.uname().nodename:
            raise Unusable("durable_pg's fixtures need every xdist worker on the machine where pytest was started")
        config.stash[_RUN] = run = SharedRun.taken(handed[1], url) if handed else SharedRun.made(url)
        if not handed:
            config.add_cleanup(run.end)
    return config.stash[_RUN]


@pytest.fixture(scope="session")
def _durable_pg_server(pytestconfig: pytest.Config) -> FixtureServer:
    from durable_pg.pytest_plugin.errors import Unusable  # noqa: PLC0415

    try:
        return _run(pytestconfig).server()
    except Unusable as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def durable_db(_durable_pg_server: FixtureServer) -> Iterator[DurableDatabase]:
    """A Postgres database of this test's own with durable_pg in it, dropped afterwards.
    durable_db.app_url: for the agent under test, in whatever process and language it is.
    durable_db.url("operator"): the same for another login: app, operator, maintainer, auditor, mig.
    durable_db.connect("auditor"): a psycopg connection, to look at what is recorded.
    """
    database = DurableDatabase(_durable_pg_server, _durable_pg_server.clone())
    try:
        yield database
    finally:
        database._close()  # noqa: SLF001  # our own
        _durable_pg_server.drop(database.name)


@pytest.fixture
def as_app(durable_db: DurableDatabase) -> Iterator[Callable[[str, str], Identity]]:
    """Act as users, through the application's login, in this test's durable_db:
    me = as_app("acme", "user-7") is the durable_pg.Identity of a tenant's user; call it for as many as the test needs.
    """
    yield from _acting_as(durable_db.url("app"))


@pytest.fixture
def as_operator(durable_db: DurableDatabase) -> Iterator[Callable[[str, str], Identity]]:
    """Act as people on call, who read all of one tenant, through the operators' login, in this test's durable_db:
    as_operator("acme", "on-call") is a durable_pg.Identity. What only the application may do is refused to it.
    """
    yield from _acting_as(durable_db.url("operator"))


def _acting_as(url: str) -> Iterator[Callable[[str, str], Identity]]:
    from durable_pg import Durable  # noqa: PLC0415

    opened: list[Durable] = []
    with ExitStack() as stack:

        def act_as(tenant_id: str, user_id: str) -> Identity:
            if not opened:
                opened.append(stack.enter_context(Durable.from_url(url)))
            return opened[0].act_as(tenant_id, user_id)

        yield act_as
