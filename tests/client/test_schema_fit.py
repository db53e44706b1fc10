"""A database that the client doesn't fit says what to do, and nothing is written; a newer schema will do."""

from collections.abc import Iterator

import pytest
from pytest_postgresql.executors import NoopExecutor

from durable_pg import Durable, Identity, migrate
from durable_pg._wire.statements import QUERIES
from durable_pg.errors import DurableError, RoleMissing, SchemaMissing, SchemaOlder
from tests.client.disturbing import told
from tests.client.every_call import every_call
from tests.client.newer_schema import make_newer
from tests.support.harness import Database, rows
from tests.support.servers import Server

COMMAND = "durable-pg upgrade"


@pytest.fixture
def own(server: Server, migrated_template: NoopExecutor) -> Iterator[Database]:
    """A migrated database whose schema a test may change."""
    database = Database(server, migrated_template.template_dbname).clone()
    yield database
    database.drop()


def refusal(db: Database, kind: type[DurableError], login: str = "app") -> DurableError:
    """Make a call that is refused."""
    with Durable.from_url(db.url(login), max_size=1) as durable, pytest.raises(kind) as caught:
        durable.act_as("T1", "U1").open_session("support", "s-1")
    assert told(caught.value) == (kind, False, "open_session")
    assert caught.value.names == {"tenant_id": "T1", "user_id": "U1", "app_name": "support", "session_id": "s-1"}
    return caught.value


def change(db: Database, *statements: str) -> None:
    with db.superuser() as root:
        for statement in statements:
            root.execute(statement.encode())


def test_a_database_without_the_schema(empty_database: Database) -> None:
    error = refusal(empty_database, SchemaMissing)
    assert error.sqlstate == "3F000"
    assert COMMAND in error.hint


def test_a_schema_that_was_dropped(own: Database) -> None:
    change(own, "drop schema durable cascade")
    assert COMMAND in (refusal(own, SchemaMissing)).hint


def test_a_database_that_was_downgraded_to_nothing(own: Database) -> None:
    migrate.downgrade(own.url("mig"), to="base")
    assert COMMAND in (refusal(own, SchemaOlder)).hint


def test_a_schema_with_nothing_in_it(empty_database: Database) -> None:
    change(empty_database, "create schema durable", "grant usage on schema durable to durable_app")
    error = refusal(empty_database, SchemaOlder)
    assert error.sqlstate == "42883"
    assert COMMAND in error.hint


def test_a_schema_without_this_function(own: Database) -> None:
    change(own, "drop function durable.open_session")
    error = refusal(own, SchemaOlder)
    assert COMMAND in error.hint
    assert "open_session" in error.detail
    assert rows(own, "sessions") == []


def test_a_function_with_a_parameter_less(own: Database) -> None:
    change(
        own,
        "alter function durable.open_session rename to whole",
        """create function durable.open_session(me text, app_name text, session_id text) returns durable.session_row
           language sql as 'select durable.whole(me, app_name, session_id)'""",
        "grant execute on function durable.open_session to durable_app",
    )
    error = refusal(own, SchemaOlder)
    assert error.sqlstate == "42883"
    assert COMMAND in error.hint
    assert rows(own, "sessions") == []


def test_a_row_with_a_column_less(own: Database) -> None:
    change(own, "alter type durable.session_row rename attribute last_seq to another")
    error = refusal(own, SchemaOlder)
    assert error.sqlstate == "42703"
    assert COMMAND in error.hint
    assert rows(own, "sessions") == []


def test_a_newer_schema_will_do(own: Database) -> None:
    make_newer(own, list(QUERIES))
    with Durable.from_url(own.url("app"), max_size=1) as durable:
        every_call(durable.act_as("T1", "U1"))
    assert len(rows(own, "runs")) == 2


# Before Postgres 16 whoever makes a role has all that it has.
@pytest.mark.parametrize(
    "login", [pytest.param("mig", marks=pytest.mark.pg(">= 16")), "operator", "maintainer", "auditor"]
)
def test_a_login_that_is_none_of_an_application(own: Database, login: str) -> None:
    error = refusal(own, RoleMissing, login)
    assert error.sqlstate == "42501"
    assert "--app-login" in error.hint
    assert rows(own, "sessions") == []


def test_an_auditor_reads_nothing_through_a_client(own: Database) -> None:
    with Durable.from_url(own.url("app"), max_size=1) as durable:
        session = durable.act_as("T1", "U1").open_session("support", "s-1")
    with Durable.from_url(own.url("auditor"), max_size=1) as durable:
        auditor: Identity = durable.act_as("T1", "U1")
        with pytest.raises(RoleMissing):
            auditor.read_events(session)
