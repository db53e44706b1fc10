"""A table of somebody else, who may use the guards and belongs to no role of ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.support.harness import PROCESS, Connection, Database

# What a foreign team needs besides USAGE on the schema: the guards, what they call, and their triggers' functions.
NEEDED = (
    *("protect_append_only(regclass)", "protect_rows(regclass)", "protect_read_only(regclass)"),
    *("protect_write_once(regclass, text[])", "protect_frozen(regclass, text[])"),
    *("check_guardable(regclass, text[])", "put_column_guard(regclass, text, text, text, text[])"),
    *("refuse_rewrite()", "refuse_truncate()", "refuse_write_once()", "refuse_frozen()"),
)


@dataclass(frozen=True)
class Team:
    """A role that owns tables in `public`."""

    db: Database
    name: str

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """One transaction as the team."""
        with self.db.superuser() as connection:
            connection.execute(f"set local role {self.name}".encode())
            yield connection

    def do(self, *statements: str) -> None:
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement.encode())


@pytest.fixture(scope="module")
def team_role(module_db: Database) -> Iterator[Team]:
    team = Team(module_db, f"durable_test_team_{PROCESS}")
    with module_db.superuser() as root:
        root.execute(f"create role {team.name}".encode())
        root.execute(f"grant create, usage on schema public to {team.name}".encode())
        root.execute(f"grant usage on schema durable to {team.name}".encode())
        for function in NEEDED:
            root.execute(f"grant execute on function durable.{function} to {team.name}".encode())
    yield team
    with module_db.superuser() as root:
        root.execute(f"drop owned by {team.name}; drop role {team.name}".encode())


@pytest.fixture
def team(team_role: Team) -> Iterator[Team]:
    """The team with a table `public.agent_runs` of one row."""
    team_role.do(
        "create table public.agent_runs ("
        'id integer primary key, status text, tools_executed boolean, notes jsonb, raw json, "Odd ""Name"" ü" text)',
        "insert into public.agent_runs (id, status) values (1, 'open')",
    )
    yield team_role
    team_role.do("drop table if exists public.agent_runs cascade")
