"""The way back drops what it made, and no record without being told to."""

import pytest

from durable_pg import migrate
from durable_pg.migrate import catalog
from tests.support.harness import Database, one, rows, value

HELD = "select count(*) from pg_class as c where c.relnamespace = 'durable'::regnamespace and c.relkind = 'r'"


def test_an_empty_schema_goes_back_to_the_version_table_and_up_again(db: Database) -> None:
    migrate.downgrade(db.url("mig"), to="base")
    assert migrate.current(db.url("mig")) is None
    with db.superuser() as root:
        assert value(root, HELD) == 1
        assert value(root, "select count(*) from pg_proc where pronamespace = 'durable'::regnamespace") == 0
        assert value(root, "select count(*) from pg_default_acl") == 0
    migrate.upgrade(db.url("mig"))
    assert catalog.check(db.url("mig")) == []


def test_rows_stop_it_and_stay(db: Database) -> None:
    record(db)
    before = rows(db, "sessions")
    with pytest.raises(migrate.RowsExist, match=r"durable\.sessions"):
        migrate.downgrade(db.url("mig"), to="base")
    assert rows(db, "sessions") == before
    assert len(before) == 1
    assert catalog.check(db.url("mig")) == []


def test_told_to_drop_data_it_does(db: Database) -> None:
    record(db)
    migrate.downgrade(db.url("mig"), to="base", drop_data=True)
    with db.superuser() as root:
        assert value(root, HELD) == 1


def test_a_foreign_table_that_uses_a_guard_is_not_stripped_of_it(db: Database) -> None:
    with db.superuser() as root:
        root.execute("create table public.mine (n integer)")
        root.execute("select durable.protect_append_only('public.mine')")
    with pytest.raises(migrate.MigrationError, match="2BP01"):
        migrate.downgrade(db.url("mig"), to="base")
    assert catalog.check(db.url("mig")) == []


def record(db: Database) -> None:
    with db.as_app() as app:
        one(app, "select * from durable.open_session(app_name => 'support', session_id => 's-1')")
