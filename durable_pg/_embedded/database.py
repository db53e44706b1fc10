"""A migrated database on a temporary server, with a login for each role, as a deployment would make them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
from psycopg import sql

from durable_pg import migrate
from durable_pg._embedded.logins import LOGINS, MIGRATOR, Credentials, provision
from durable_pg._embedded.temporary import TemporaryServer, temporary_server
from durable_pg.migrate.roles import FRONT

_DATABASE = "agents"


@dataclass(frozen=True)
class TemporaryDatabase:
    """Where its logins connect, and what it is."""

    server: TemporaryServer
    logins: Mapping[str, Credentials] = field(repr=False)
    revision: str | None
    postgres: str

    def url(self, kind: str) -> str:
        """Where the login for a kind of work connects: app, operator, maintainer, auditor or mig."""
        return self.server.url_of(self.logins[kind].name, _DATABASE)


@contextmanager
def temporary_database(tell: Callable[[str], None] = lambda _: None) -> Iterator[TemporaryDatabase]:
    """Start and migrate it; remove it in the end. `tell` hears of each step. Raises NoEmbeddedServer."""
    tell("Starting an embedded Postgres")
    with temporary_server() as server:
        logins = {kind: Credentials(kind, secrets.token_urlsafe(24)) for kind in LOGINS}
        logins[MIGRATOR] = logins[MIGRATOR]._replace(name="migrator")
        with psycopg.connect(server.url, autocommit=True) as dba:
            provision(dba, logins, roles=False)
            owned = sql.SQL("create database {} owner {} template template0 encoding 'UTF8'")
            dba.execute(owned.format(sql.Identifier(_DATABASE), sql.Identifier(logins[MIGRATOR].name)))
            postgres = dba.info.parameter_status("server_version") or ""
        tell("Migrating as the login migrator, which is no superuser")
        url = server.url_of(logins[MIGRATOR].name, _DATABASE)
        revision = migrate.upgrade(url, logins={kind: logins[kind].name for kind in FRONT}).after
        yield TemporaryDatabase(server, logins, revision, postgres)
