"""Which Postgres the tests run on: DURABLE_PG_TEST_URL, a container (--pg=17), or the one from the `embedded` extra.

The process that starts the suite starts the server and hands its address to the workers in DURABLE_PG_TEST_URL.
The server must be one to throw away: logins and the durable_* roles are made in it, and its superuser is used.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row

from durable_pg._embedded.errors import NoEmbeddedServer
from durable_pg._embedded.temporary import FOR_TESTS, start_temporary

URL = "DURABLE_PG_TEST_URL"
PASSWORD = "durable"  # noqa: S105  # for servers that ask for one; the embedded one trusts
LOGINS = ("mig", "app", "app2", "operator", "maintainer", "auditor")
ROLES = (
    *("durable_owner", "durable_engine", "durable_steward", "durable_janitor"),
    *("durable_app", "durable_operator", "durable_maintainer", "durable_auditor"),
)


@dataclass(frozen=True)
class Server:
    """A running Postgres, seen as its superuser. Carries the attributes that `postgresql_noproc(depends_on=)` reads."""

    host: str
    port: int
    user: str
    password: str | None
    maintenance_dbname: str
    parameters: dict[str, str] = field(default_factory=dict)
    options: str = ""
    template_dbname: None = None

    @classmethod
    def at(cls, url: str) -> "Server":
        given: dict[str, Any] = conninfo_to_dict(url)
        return cls(
            host=str(given.pop("host", "localhost")),
            port=int(given.pop("port", 5432)),
            user=str(given.pop("user", "postgres")),
            password=given.pop("password", None),
            maintenance_dbname=str(given.pop("dbname", "postgres")),
            parameters={name: str(value) for name, value in given.items()},
        )

    def url(self, database: str, login: str | None = None) -> str:
        """Return the address of a database for one of the suite's logins, or for the superuser."""
        password = self.password if login is None else PASSWORD
        who = quote(login or self.user) + (f":{quote(password, safe='')}" if password else "")
        parameters = dict(self.parameters)
        where = f"{self.host}:{self.port}"
        if self.host.startswith("/"):  # the directory of a unix socket
            where, parameters = "", {"host": self.host, "port": str(self.port), **parameters}
        query = f"?{urlencode(parameters)}" if parameters else ""
        return f"postgresql://{who}@{where}/{quote(database)}{query}"

    def connect(self, database: str | None = None) -> psycopg.Connection[DictRow]:
        """Connect as the superuser, in autocommit."""
        url = self.url(database or self.maintenance_dbname)
        return psycopg.connect(url, autocommit=True, row_factory=dict_row)

    @property
    def major(self) -> int:
        with self.connect() as connection:
            return connection.info.server_version // 10000

    @contextmanager
    def alone(self) -> Iterator[psycopg.Connection[DictRow]]:
        """Hold off the other workers while roles, which all databases share, are being changed."""
        with self.connect() as connection:
            connection.execute("select pg_advisory_lock(hashtext('durable_pg tests'))")
            yield connection

    def provision(self) -> None:
        """Make the logins, none of them a superuser; only `mig` may create roles. Nothing needs to reach the disk."""
        with self.alone() as root:
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):
                root.execute(f"alter system set {setting} = off".encode())
            root.execute("select pg_reload_conf()")
            present = {row["rolname"] for row in root.execute("select rolname from pg_roles")}
            for login in LOGINS:
                verb = "alter" if login in present else "create"
                attributes = "createrole" if login == "mig" else "nocreaterole"
                root.execute(
                    f"{verb} role {login} login nosuperuser nobypassrls {attributes} password '{PASSWORD}'".encode()
                )
            # Roles left by a run under another login: give `mig` what CREATEROLE would have given it as their maker.
            if root.info.server_version >= 160000:
                for role in present.intersection(ROLES):
                    root.execute(f"grant {role} to mig with admin true, inherit false, set false".encode())


def start(container: int | None) -> Callable[[], None]:
    """Make sure that DURABLE_PG_TEST_URL names a server; return what stops it."""
    if os.environ.get(URL):
        if container is not None:
            raise pytest.UsageError(f"--pg={container} and {URL} both name a server: give one of them")
        return lambda: None
    os.environ[URL], stop = _embedded() if container is None else _container(container)

    def forget_and_stop() -> None:
        del os.environ[URL]
        stop()

    return forget_and_stop


def _embedded() -> tuple[str, Callable[[], None]]:
    try:
        return start_temporary(FOR_TESTS, memory())
    except NoEmbeddedServer as error:
        raise pytest.UsageError(f"no {URL}, and {error}") from error


def memory() -> Path | None:
    """Where files are kept in memory, if there is room: making a database is ten times faster there."""
    memory = Path("/dev/shm")  # noqa: S108  # a directory is made in it by mkdtemp
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**31
    return memory if roomy else None


def _container(major: int) -> tuple[str, Callable[[], None]]:
    from docker.errors import DockerException  # noqa: PLC0415
    from testcontainers.community.postgres import PostgresContainer  # noqa: PLC0415

    try:
        container = PostgresContainer(f"postgres:{major}", username="postgres", password=PASSWORD, driver=None)
        container.with_command("postgres -c fsync=off -c full_page_writes=off -c max_connections=200").start()
    except DockerException as error:
        raise pytest.UsageError(f"--pg={major} needs a Docker engine, and none answers: {error}") from error
    return container.get_connection_url(), container.stop
