"""A throw-away server with one migrated database and a login for each role, as a deployment would make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql

from durable_pg import migrate
from durable_pg.server import start_temporary

LOGINS = {"app": "app", "operator": "operator", "maintainer": "maintainer", "auditor": "auditor"}
_DATABASE = "agents"


@dataclass(frozen=True)
class DemoDatabase:
    """Where its logins connect, and what it is."""

    superuser_url: str
    revision: str | None
    postgres: str

    def url(self, login: str) -> str:
        """Where a login connects."""
        return _url(self.superuser_url, login)


@contextmanager
def demo_database(tell: Callable[[str], None]) -> Iterator[DemoDatabase]:
    """Start and migrate it; remove it in the end. `tell` hears of each step. Raises NoEmbeddedServer."""
    tell("Starting an embedded Postgres")
    superuser_url, stop = start_temporary()
    try:
        with psycopg.connect(superuser_url, autocommit=True) as dba:
            # What a DBA does once.
            dba.execute("create role migrator login createrole")
            for login in LOGINS.values():
                dba.execute(sql.SQL("create role {} login").format(sql.Identifier(login)))
            dba.execute(sql.SQL("create database {} owner migrator").format(sql.Identifier(_DATABASE)))
            postgres = dba.info.parameter_status("server_version") or ""
        tell("Migrating as the login migrator, which is no superuser")
        revision = migrate.upgrade(_url(superuser_url, "migrator"), logins=LOGINS).after
        yield DemoDatabase(superuser_url, revision, postgres)
    finally:
        stop()


def _url(superuser_url: str, login: str) -> str:
    return psycopg.conninfo.make_conninfo(superuser_url, user=login, dbname=_DATABASE)
