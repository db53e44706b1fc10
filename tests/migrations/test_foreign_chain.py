"""upgrade() inside a revision of a project's own Alembic chain takes part in that transaction and disturbs nothing."""

import asyncio
from pathlib import Path

import pytest
import sqlalchemy
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from durable_pg import migrate
from durable_pg.migrate import catalog
from tests.support.harness import Database, one, value

ENV = """
from alembic import context
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

engine = create_engine(context.config.get_main_option("sqlalchemy.url"), poolclass=NullPool)
with engine.connect() as connection:
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
"""

REVISION = """
from alembic import context, op
import sqlalchemy as sa

from durable_pg import migrate

revision = "a1"
down_revision = None


def upgrade():
    op.execute("set local lock_timeout = '7s'")
    op.create_table("before", sa.Column("n", sa.Integer))
    migrate.upgrade(op.get_bind())
    op.create_table("after", sa.Column("n", sa.Integer))
    found = op.get_bind().exec_driver_sql(
        "select current_user::text, current_setting('role'), current_setting('lock_timeout'),"
        " current_setting('row_security'), current_setting('search_path')"
    ).one()
    assert tuple(found) == ("mig", "none", "7s", "on", '"$user", public'), found
    assert context.get_context().opts["script"].get_current_head() == "a1"
    {ending}


def downgrade():
    migrate.downgrade(op.get_bind(), to="base")
    op.drop_table("after")
    op.drop_table("before")
"""


def chain(tmp_path: Path, db: Database, ending: str = "pass") -> Config:
    (tmp_path / "versions").mkdir()
    (tmp_path / "env.py").write_text(ENV)
    (tmp_path / "versions" / "a1.py").write_text(REVISION.replace("{ending}", ending))
    config = Config()
    config.set_main_option("script_location", str(tmp_path))
    config.set_main_option("path_separator", "os")
    config.set_main_option("sqlalchemy.url", sqlalchemy_url(db).replace("%", "%%"))
    return config


def sqlalchemy_url(db: Database) -> str:
    return db.url("mig").replace("postgresql://", "postgresql+psycopg://")


def test_it_makes_the_same_schema_and_leaves_op_role_and_settings_as_they_were(
    empty_database: Database, tmp_path: Path
) -> None:
    config = chain(tmp_path, empty_database)
    command.upgrade(config, "head")

    assert catalog.check(empty_database.url("mig")) == []
    with empty_database.superuser() as root:
        assert value(root, "select version_num from public.alembic_version") == "a1"
        owners = one(
            root, "select min(tableowner) as low, max(tableowner) as high from pg_tables where schemaname = 'public'"
        )
    assert owners == {"low": "mig", "high": "mig"}

    command.downgrade(config, "base")
    assert migrate.current(empty_database.url("mig")) is None


def test_when_the_outer_revision_fails_nothing_is_left(empty_database: Database, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="outer"):
        command.upgrade(chain(tmp_path, empty_database, "raise RuntimeError('outer')"), "head")
    with empty_database.superuser() as root:
        assert value(root, "select count(*) from pg_namespace where nspname = 'durable'") == 0
        assert value(root, "select count(*) from pg_tables where schemaname = 'public'") == 0


def test_a_refusal_leaves_the_callers_transaction_usable(db: Database) -> None:
    engine = create_engine(sqlalchemy_url(db), poolclass=NullPool)
    with db.as_app() as app:
        app.execute("select durable.open_session(app_name => 'support')")
    with engine.connect() as connection, connection.begin():
        connection.execute(text("create table public.mine (n integer)"))
        with pytest.raises(migrate.RowsExist):
            migrate.downgrade(connection, to="base")
        assert connection.execute(text("select current_user::text")).scalar_one() == "mig"
        assert migrate.current(connection) == migrate.head()
        assert migrate.upgrade(connection).steps == 0
    with db.superuser() as root:
        assert value(root, "select to_regclass('public.mine') is not null")


def test_an_autocommit_connection_is_refused(db: Database) -> None:
    engine = create_engine(sqlalchemy_url(db), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(migrate.BadRequest, match="autocommit"):
        migrate.upgrade(connection)


def test_alembics_own_command_line_finds_the_same_chain(empty_database: Database) -> None:
    from durable_pg.migrate import paths  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(paths.migrations_dir()))
    config.set_main_option("path_separator", "os")
    engine = create_engine(sqlalchemy_url(empty_database), poolclass=NullPool)
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        connection.commit()
    assert sqlalchemy.inspect(engine).has_table("alembic_version") is False
    assert catalog.check(empty_database.url("mig")) == []


def test_it_works_on_asyncpg_through_run_sync(empty_database: Database) -> None:
    pytest.importorskip("asyncpg")
    pytest.importorskip("greenlet")
    from sqlalchemy.ext.asyncio import create_async_engine  # noqa: PLC0415

    url = empty_database.url("mig").replace("postgresql://", "postgresql+asyncpg://")
    if "?" in url:
        pytest.skip("asyncpg spells the directory of a unix socket otherwise")

    async def run() -> None:
        engine = create_async_engine(url, poolclass=NullPool)
        async with engine.begin() as connection:
            report = await connection.run_sync(migrate.upgrade)
            assert report.after == migrate.head()
            assert await connection.run_sync(catalog.check) == []
        async with engine.begin() as connection:
            with pytest.raises(migrate.BadRequest):
                await connection.run_sync(lambda sync: migrate.upgrade(sync, to="0099"))
            await connection.run_sync(lambda sync: migrate.downgrade(sync, to="base"))

    asyncio.run(run())
    assert migrate.current(empty_database.url("mig")) is None
