"""A database that tests share, each with tenants of its own: making one for every test would take most of the time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from psycopg import sql
from psycopg.rows import DictRow

from tests.support.harness import Connection, Database, one

TABLES = (
    *("app_states", "user_states", "sessions", "events", "runs", "effects", "effect_calls", "checkpoints", "tools"),
    "audit_log",
)
_numbers = count(1)


@dataclass(frozen=True)
class Rented(Database):
    """A shared database whose tenant `T1` is another one for every test."""

    number: int = field(default_factory=lambda: next(_numbers))

    @classmethod
    def of(cls, database: Database) -> "Rented":
        return cls(database.server, database.name)

    def tenant(self, name: str) -> str:
        """Return what a tenant of this test is called in the database."""
        return f"{name}.{self.number}"

    def plain(self) -> Database:
        """Return the same database with tenants called what they are called."""
        return Database(self.server, self.name)

    def act_as(self, connection: Connection, tenant: str = "T1", user: str = "U1") -> None:
        """Give the connection's transaction an identity."""
        connection.execute("select durable.act_as(%s, %s)", (self.tenant(tenant), user))

    @contextmanager
    def _front(self, login: str, tenant: str | None, user: str | None) -> Iterator[Connection]:
        with super()._front(login, tenant and self.tenant(tenant), user) as connection:
            yield connection

    @contextmanager
    def _behind(self, role: str, tenant: str | None, user: str | None) -> Iterator[Connection]:
        with super()._behind(role, tenant and self.tenant(tenant), user) as connection:
            yield connection


def stored(db: Rented, table: str) -> list[DictRow]:
    """Read the rows of this test's tenants past row-level security, in an order that content alone decides."""
    with db.superuser() as root:
        return _own(root, db, table)


def everything(db: Rented) -> dict[str, object]:
    """Return the rows of this test's tenants, and how many there are of all."""
    counts = ", ".join(f"(select count(*) from durable.{table}) as {table}" for table in TABLES)
    with db.superuser() as root:
        return {**{table: _own(root, db, table) for table in TABLES}, "counts": one(root, f"select {counts}")}


def _own(root: Connection, db: Rented, table: str) -> list[DictRow]:
    query = sql.SQL("""select t.* from {} as t where tenant_id like %s order by t::text collate "C" """)
    return root.execute(query.format(sql.Identifier("durable", table)), (f"%.{db.number}",)).fetchall()


@contextmanager
def nothing_written(db: Rented) -> Iterator[None]:
    """Assert that the block leaves this test's rows as they were and adds none for anybody."""
    before = everything(db)
    yield
    assert everything(db) == before
