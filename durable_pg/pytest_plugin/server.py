"""What a test run makes on a server, as whoever its URL names: logins, a migrated template, a copy for each test."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import count
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql

from durable_pg import migrate
from durable_pg._embedded.logins import LOGINS, MIGRATOR, Credentials, provision
from durable_pg._wire.address import Unreadable, hint, understand, without_password
from durable_pg.migrate.roles import FRONT
from durable_pg.pytest_plugin.errors import Unreachable, Unusable

_numbers = count(1)


@dataclass(frozen=True)
class FixtureServer:
    """A server that is ready: `run` begins the names of all that this run makes on it."""

    admin: str = field(repr=False)
    run: str
    host: str
    port: int
    maintenance: str
    parameters: dict[str, str]
    passwords: dict[str, str] = field(repr=False)

    def facts(self) -> dict[str, Any]:
        """What another process makes its own FixtureServer of."""
        return asdict(self)

    def login(self, kind: str) -> str:
        """What the login for a kind of work is called on this server."""
        if kind not in LOGINS:
            raise ValueError(f"there is no login {kind!r}, only {', '.join(LOGINS)}")
        return f"{self.run}_{kind}"

    def url(self, database: str, kind: str) -> str:
        """A URL that drivers of every language read."""
        who = f"{self.login(kind)}:{self.passwords[kind]}"
        where, parameters = f"{self.host}:{self.port}", self.parameters
        if ":" in self.host:
            where = f"[{self.host}]:{self.port}"
        if self.host.startswith("/"):  # the directory of a unix socket
            where, parameters = "", {"host": self.host, "port": str(self.port), **parameters}
        query = f"?{urlencode(parameters)}" if parameters else ""
        return f"postgresql://{who}@{where}/{quote(database, safe='')}{query}"

    @property
    def template(self) -> str:
        """The database that tests get copies of. Nobody connects to it."""
        return f"{self.run}_template"

    def clone(self) -> str:
        """Make a copy of the template and return its name."""
        name = f"{self.run}_{os.getpid()}_{next(_numbers)}"
        with _connect(self.admin) as admin:
            _execute(admin, "create database {} template {}", name, self.template)
            _execute(admin, "grant create on database {} to {}", name, self.login(MIGRATOR))
        return name

    def drop(self, database: str) -> None:
        """Drop a database under whoever is connected to it."""
        with _connect(self.admin) as admin:
            try:
                _execute(admin, "drop database if exists {} with (force)", database)
                return
            except psycopg.errors.InsufficientPrivilege:
                # An admin that is no superuser may not end them; they may end themselves.
                self._disconnect(database)
            _execute(admin, "drop database if exists {}", database)

    def _disconnect(self, database: str) -> None:
        ending = """select pg_catalog.pg_terminate_backend(a.pid, 5000) from pg_catalog.pg_stat_activity as a
            where a.datname = %s and a.usename = current_user"""
        for kind in LOGINS:
            with psycopg.connect(self.url(self.maintenance, kind), autocommit=True) as connection:
                connection.execute(ending, (database,))

    def migrate(self) -> None:
        """Make the template as a deployment would: by a login that is no superuser and may not make roles."""
        with _connect(self.admin) as admin:
            _execute(admin, "create database {} template template0 encoding 'UTF8'", self.template)
            _execute(admin, "grant create on database {} to {}", self.template, self.login(MIGRATOR))
        migrate.upgrade(self.url(self.template, MIGRATOR), logins={kind: self.login(kind) for kind in FRONT})


def prepare(url: str, run: str) -> FixtureServer:
    """Make a run's logins and its template on the server at `url`. Raises Unusable."""
    with _refusals_told():
        with _reached(url) as admin:
            _require_rights(admin)
            given: dict[str, Any] = understand(url)[1]
            server = FixtureServer(
                admin=understand(url)[0],
                run=run,
                host=admin.info.host,
                port=admin.info.port,
                maintenance=admin.info.dbname,
                # Nothing but TLS: other drivers take libpq's remaining words for settings of the server.
                parameters={name: str(value) for name, value in given.items() if name.startswith("ssl")},
                passwords={kind: secrets.token_urlsafe(24) for kind in LOGINS},
            )
            # One run at a time on a server.
            admin.execute("select pg_catalog.pg_advisory_lock(pg_catalog.hashtext('durable_pg pytest'))")
            logins = {kind: Credentials(server.login(kind), password) for kind, password in server.passwords.items()}
            provision(admin, logins, roles=True)
        server.migrate()
    return server


def remove(url: str, run: str) -> str:
    """Drop everything that a run has made but the roles of durable_pg; return what could not be, for a person."""
    with suppress(Unreachable), _reached(url) as admin:
        databases = _names(admin, "select datname from pg_catalog.pg_database where starts_with(datname, %s)", run)
        problems = []
        for database in databases:
            problems += _try(admin, "drop database if exists {} with (force)", database)
        for login in _names(admin, "select rolname from pg_catalog.pg_roles where starts_with(rolname, %s)", run):
            problems += _try(admin, "drop role {}", login)
        return f"left on the server: {'; '.join(problems)}" if problems else ""
    return f"the server is out of reach; databases and logins that begin with {run} may be left there"


def _require_rights(admin: psycopg.Connection[Any]) -> None:
    found = admin.execute(
        "select r.rolname, r.rolsuper or (r.rolcreatedb and r.rolcreaterole)"
        " from pg_catalog.pg_roles as r where r.rolname = current_user"
    ).fetchone()
    login, fit = found or ("?", False)
    if not fit:
        raise Unusable(
            f"{login} can't make databases and logins for durable_pg's fixtures: it needs CREATEDB and CREATEROLE, on a"
            " server to throw away"
        )


@contextmanager
def _reached(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Connect as whom the URL names. Raises Unreachable, without a password in it."""
    try:
        dsn, given = understand(url)
    except Unreadable as error:
        raise Unreachable(f"the URL of the server for durable_pg's fixtures: {error} {error.hint}") from None
    try:
        connection = _connect(dsn)
    except psycopg.OperationalError as error:
        told = without_password(str(error).strip(), given)
        told = f"durable_pg's fixtures can't reach their server: {told}\n{hint(told, url, given)}"
        raise Unreachable(told.strip()) from None
    with connection:
        yield connection


@contextmanager
def _refusals_told() -> Iterator[None]:
    """What the server refuses while it is prepared is one sentence, not a traceback for each test."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise Unusable(
            f"this login can't prepare the server for durable_pg's fixtures: {error}\nOn Postgres 16 and later only a"
            " superuser and whoever made the durable_* roles may grant them."
        ) from None
    except (psycopg.Error, migrate.MigrationError) as error:
        raise Unusable(f"the server can't be prepared for durable_pg's fixtures: {error}") from None


def _connect(dsn: str) -> psycopg.Connection[Any]:
    return psycopg.connect(
        dsn, autocommit=True, client_encoding="utf8", connect_timeout=10, application_name="durable_pg pytest"
    )


def _execute(admin: psycopg.Connection[Any], statement: str, *names: str) -> None:
    admin.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _names(admin: psycopg.Connection[Any], query: str, prefix: str) -> list[str]:
    return [str(name) for (name,) in admin.execute(query.encode(), (prefix,)).fetchall()]


def _try(admin: psycopg.Connection[Any], statement: str, name: str) -> list[str]:
    try:
        _execute(admin, statement, name)
    except psycopg.Error as error:
        return [f"{name} ({str(error).strip().splitlines()[0]})"]
    return []
