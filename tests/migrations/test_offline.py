"""The script for psql gives the very database that the upgrade gives, and needs none to be made."""

from pathlib import Path

import pytest

from durable_pg import migrate
from durable_pg.migrate import catalog
from tests.migrations import support
from tests.support.harness import Database


@pytest.fixture
def up(tmp_path: Path) -> Path:
    done = support.durable_pg("sql", "base:head", extra={"PGHOST": "/nowhere"})
    assert done.returncode == 0, done.stderr
    path = tmp_path / "up.sql"
    path.write_text(done.stdout)
    return path


@pytest.mark.parametrize("how", [[], ["--single-transaction", "--set=ON_ERROR_STOP=1"]], ids=["plain", "psql -1"])
def test_the_script_makes_the_same_catalog_and_dump(
    db: Database, empty_database: Database, up: Path, how: list[str]
) -> None:
    done = support.psql(empty_database.url("mig"), db.server.major, *how, f"--file={up}")
    assert done.returncode == 0, done.stderr

    assert catalog.read(empty_database.url("mig")) == catalog.read(db.url("mig"))
    assert support.dump(empty_database) == support.dump(db)
    assert migrate.upgrade(empty_database.url("mig")).steps == 0


def test_run_twice_the_script_refuses_and_changes_nothing(db: Database, up: Path) -> None:
    before = catalog.read(db.url("mig"))
    done = support.psql(db.url("mig"), db.server.major, f"--file={up}")
    assert done.returncode != 0
    assert "does not start from the revision of this database" in done.stderr
    assert catalog.read(db.url("mig")) == before


def test_the_script_downwards_leaves_what_downgrade_leaves(db: Database, tmp_path: Path) -> None:
    twin = db.clone()
    try:
        script = tmp_path / "down.sql"
        script.write_text(migrate.offline_sql("head:base"))
        done = support.psql(db.url("mig"), db.server.major, "--single-transaction", f"--file={script}")
        assert done.returncode == 0, done.stderr
        migrate.downgrade(twin.url("mig"), to="base")
        assert catalog.read(db.url("mig")) == catalog.read(twin.url("mig"))
    finally:
        twin.drop()


def test_the_script_downwards_refuses_while_rows_exist_unless_told(db: Database, tmp_path: Path) -> None:
    with db.as_app() as app:
        app.execute("select durable.open_session(app_name => 'support')")
    script = tmp_path / "down.sql"
    for drop_data, code in ((False, 3), (True, 0)):
        script.write_text(migrate.offline_sql("head:base", drop_data=drop_data))
        done = support.psql(db.url("mig"), db.server.major, f"--file={script}")
        assert done.returncode == code, done.stderr
    assert migrate.current(db.url("mig")) is None


def test_a_step_that_needs_a_database_says_so_and_spoils_no_other(package: Path, db: Database, tmp_path: Path) -> None:
    (package / "migrations" / "versions" / "0002_ask.py").write_text(
        "from alembic import op\n"
        "revision = '0002'\n"
        "down_revision = '0001'\n"
        "def upgrade() -> None:\n"
        "    op.get_bind().exec_driver_sql('select 1').scalar_one()\n"
        "def downgrade() -> None:\n"
        "    pass\n"
    )
    done = support.durable_pg("sql", "base:head", root=package)
    assert done.returncode == 0, done.stderr
    assert "This step can't be made offline" in done.stdout
    with support.new_database(db.server) as other:
        script = tmp_path / "up.sql"
        script.write_text(done.stdout)
        assert support.psql(other.url("mig"), db.server.major, f"--file={script}").returncode == 0
        assert migrate.current(other.url("mig")) == "0001"
        assert support.durable_pg("upgrade", "--url", other.url("mig"), root=package).returncode == 0


@pytest.mark.parametrize("revisions", ["base", "base:0099", ":", "head"])
def test_a_range_that_makes_no_sense_is_refused(revisions: str) -> None:
    with pytest.raises(migrate.BadRequest):
        migrate.offline_sql(revisions)
