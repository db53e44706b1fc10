"""What tests say: `with refused("23W01"), db.as_app() as app: app.execute(...)`."""

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import DictRow, dict_row

from tests.support import idle
from tests.support.servers import Server

Connection: TypeAlias = psycopg.Connection[DictRow]
PROCESS = secrets.token_hex(3)
_numbers = count(1)


@dataclass(frozen=True)
class Database:
    """A database owned by the login `mig`.

    Each `as_...` block is one transaction on a connection that nobody else has, and that remembers nothing.
    """

    server: Server
    name: str

    def url(self, login: str) -> str:
        return self.server.url(self.name, login)

    def connect(self, login: str, *, autocommit: bool = False) -> Connection:
        return psycopg.connect(self.url(login), autocommit=autocommit, row_factory=dict_row)

    def superuser(self) -> AbstractContextManager[Connection]:
        """One transaction beyond every guard: to provision and to read back, never to act."""
        return idle.transaction(self.server.url(self.name))

    def as_app(
        self, tenant: str | None = "T1", user: str | None = "U1", *, login: str = "app"
    ) -> AbstractContextManager[Connection]:
        return self._front(login, tenant, user)

    def as_operator(
        self, tenant: str | None = "T1", user: str | None = "on-call"
    ) -> AbstractContextManager[Connection]:
        return self._front("operator", tenant, user)

    def as_maintainer(self, tenant: str | None = None, user: str | None = None) -> AbstractContextManager[Connection]:
        return self._front("maintainer", tenant, user)

    def as_auditor(self, tenant: str | None = None, user: str | None = None) -> AbstractContextManager[Connection]:
        return self._front("auditor", tenant, user)

    def as_owner(self, tenant: str | None = None, user: str | None = None) -> AbstractContextManager[Connection]:
        return self._behind("durable_owner", tenant, user)

    def as_engine(self, tenant: str | None = "T1", user: str | None = "U1") -> AbstractContextManager[Connection]:
        return self._behind("durable_engine", tenant, user)

    def as_steward(self, tenant: str | None = "T1", user: str | None = "on-call") -> AbstractContextManager[Connection]:
        return self._behind("durable_steward", tenant, user)

    def as_janitor(self, tenant: str | None = None, user: str | None = None) -> AbstractContextManager[Connection]:
        return self._behind("durable_janitor", tenant, user)

    def clone(self) -> "Database":
        """Copy this database as it is; nobody else may be connected to it."""
        idle.close(self.name)
        copy = Database(self.server, new_name())
        with idle.autocommit(self.server.url(self.server.maintenance_dbname)) as root:
            # Copying files is faster than writing them to the log, to make it and to drop it. 14 does nothing else.
            strategy = sql.SQL("strategy file_copy" if root.info.server_version >= 150000 else "")
            root.execute(
                sql.SQL("create database {} template {} owner mig {}").format(
                    sql.Identifier(copy.name), sql.Identifier(self.name), strategy
                )
            )
        return copy

    def drop(self) -> None:
        idle.close(self.name)
        with idle.autocommit(self.server.url(self.server.maintenance_dbname)) as root:
            root.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(self.name)))

    @contextmanager
    def _front(self, login: str, tenant: str | None, user: str | None) -> Iterator[Connection]:
        with idle.transaction(self.url(login)) as connection:
            if tenant is not None or user is not None:
                connection.execute("select durable.act_as(%s, %s)", (tenant, user))
            yield connection

    @contextmanager
    def _behind(self, role: str, tenant: str | None, user: str | None) -> Iterator[Connection]:
        """No runtime login reaches these roles: the migration login does, and sets the identity by its settings."""
        with idle.transaction(self.url("mig")) as connection:
            for setting, value in (("tenant_id", tenant), ("user_id", user)):
                if value is not None:
                    connection.execute(
                        sql.SQL("set local {} = {}").format(sql.Identifier("durable", setting), sql.Literal(value))
                    )
            connection.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
            yield connection


def new_name() -> str:
    """Name a database after this process, so that runs which share a server don't meet."""
    return f"durable_test_{PROCESS}_{next(_numbers)}"


@dataclass
class Refusal:
    """What was refused, for a closer look after the block."""

    error: psycopg.Error | None = field(default=None)

    @property
    def diag(self) -> psycopg.errors.Diagnostic:
        assert self.error is not None, "the block has not ended"
        return self.error.diag


@contextmanager
def refused(sqlstate: str, constraint: str | None = None, match: str | None = None) -> Iterator[Refusal]:
    """Expect Postgres to end the block with exactly this SQLSTATE, by this constraint, in words that match."""
    refusal = Refusal()
    try:
        yield refusal
    except psycopg.Error as error:
        refusal.error = error
        if error.sqlstate != sqlstate:
            raise AssertionError(f"expected SQLSTATE {sqlstate}, refused with {error.sqlstate}: {error}") from error
        if constraint is not None and error.diag.constraint_name != constraint:
            found = error.diag.constraint_name
            raise AssertionError(f"expected {constraint} to refuse, {found} did: {error}") from error
        if match is not None and not re.search(match, str(error)):
            raise AssertionError(f"expected a refusal that matches {match!r}, got: {error}") from error
    else:
        pytest.fail(f"expected SQLSTATE {sqlstate}, and nothing was refused")


def one(connection: Connection, query: str, *parameters: Any) -> DictRow:
    """Run a query that must give one row."""
    found = connection.execute(query.encode(), parameters or None).fetchall()
    assert len(found) == 1, f"expected one row, got {len(found)}: {query}"
    return found[0]


def value(connection: Connection, query: str, *parameters: Any) -> Any:
    """Run a query that must give one row of one column."""
    (found,) = one(connection, query, *parameters).values()
    return found


def rows(db: Database, table: str) -> list[DictRow]:
    """Read every row of a durable table past row-level security, in an order that content alone decides."""
    query = sql.SQL('select t.* from {} as t order by t::text collate "C"')
    with db.superuser() as root:
        return root.execute(query.format(sql.Identifier("durable", table))).fetchall()


@contextmanager
def connections(db: Database, number: int, login: str = "app") -> Iterator[list[Connection]]:
    """Open connections side by side, for tests that let transactions meet; what is still open is rolled back."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(db.connect(login))) for _ in range(number)]


def wait_until_blocked(db: Database, waiter: Connection, *, by: Connection | None = None, seconds: float = 10) -> None:
    """Return as soon as a statement that another thread runs on `waiter` waits for a lock (that `by` holds)."""
    deadline = time.monotonic() + seconds
    with db.server.connect(db.name) as root:
        while time.monotonic() < deadline:
            blockers = value(root, "select pg_blocking_pids(%s)", waiter.info.backend_pid)
            if by.info.backend_pid in blockers if by else blockers:
                return
            time.sleep(0.005)
    pytest.fail(f"backend {waiter.info.backend_pid} was not blocked within {seconds} s")
