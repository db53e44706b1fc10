"""Upgrades meet each other, die half way, and find databases in every state."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from durable_pg import migrate
from durable_pg.migrate import catalog
from tests.migrations import support
from tests.support.harness import Database, value

OBJECTS = "select count(*) from pg_class as c where c.relnamespace = 'durable'::regnamespace"


@contextmanager
def current_in_a_loop(db: Database) -> Iterator[set[str | None]]:
    """Ask for the revision all the time, as a readiness probe would."""
    seen: set[str | None] = set()
    over = threading.Event()
    faults: list[Exception] = []

    def ask() -> None:
        try:
            while not over.is_set():
                seen.add(migrate.current(db.url("mig")))
        except Exception as error:  # noqa: BLE001
            faults.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
    assert not faults


def other_chain(db: Database) -> None:
    with db.connect("mig") as connection:
        connection.execute("create table public.alembic_version (version_num varchar(32) primary key)")
        connection.execute("insert into public.alembic_version values ('5ad0c0ffee')")


def test_five_upgrades_at_once_all_succeed_and_make_one_schema(empty_database: Database) -> None:
    other_chain(empty_database)
    with current_in_a_loop(empty_database) as seen:
        jobs = [support.start("upgrade", "--url", empty_database.url("mig")) for _ in range(5)]
        results = [(job.communicate(timeout=120), job.returncode) for job in jobs]

    assert [code for _, code in results] == [0] * 5, results
    texts = [out.strip() for (out, _), _ in results]
    assert sum(text.endswith(f"went from base to {migrate.head()}") for text in texts) == 1, texts
    assert sum(text.endswith(f"already at {migrate.head()}") for text in texts) == 4, texts
    assert seen <= {None, migrate.head()}
    assert catalog.check(empty_database.url("mig")) == []
    with empty_database.superuser() as root:
        assert value(root, "select version_num from public.alembic_version") == "5ad0c0ffee"


def test_an_upgrade_killed_half_way_leaves_nothing_and_the_next_one_goes_on(empty_database: Database) -> None:
    url = empty_database.url("mig")
    with empty_database.superuser() as blocker:
        # The first CREATE POLICY waits here: most of the revision is done and not committed.
        blocker.execute("lock table pg_catalog.pg_policy in exclusive mode")
        first = support.start("upgrade", "--url", url, "--lock-timeout", "60")
        _until(lambda: _waiting(empty_database), "the upgrade never came to its first policy")
        others = [support.start("upgrade", "--url", url) for _ in range(3)]
        first.kill()
        first.communicate()
        assert migrate.current(url) is None
        blocker.rollback()
    results = [(job.communicate(timeout=120), job.returncode) for job in others]

    assert [code for _, code in results] == [0, 0, 0], results
    assert catalog.check(url) == []


def _waiting(db: Database) -> bool:
    with db.server.connect(db.name) as root:
        query = "select count(*) from pg_locks where not granted and relation = 'pg_policy'::regclass"
        return bool(value(root, query))


def _until(condition: object, complaint: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if callable(condition) and condition():
            return
        time.sleep(0.02)
    pytest.fail(complaint)


def test_upgrades_at_once_from_the_previous_revision(db: Database, package: Path) -> None:
    add_revision(package)
    jobs = [support.start("upgrade", "--url", db.url("mig"), root=package) for _ in range(5)]
    results = [(job.communicate(timeout=120), job.returncode) for job in jobs]

    assert [code for _, code in results] == [0] * 5, results
    assert sum("went from 0001 to 0002" in out for (out, _), _ in results) == 1
    assert migrate.current(db.url("mig")) == "0002"


def add_revision(package: Path) -> None:
    path = package / "sql" / "ground" / "identity.sql"
    path.write_text(path.read_text().replace("declare", "declare\n    -- Changed.", 1))
    done = support.freeze(package, "touch_act_as")
    assert done.returncode == 0, done.stderr


def test_waiting_is_bounded_and_says_who_is_in_the_way(db: Database) -> None:
    with db.connect("mig") as holder:
        holder.execute("select pg_advisory_lock(%s)", (int.from_bytes(b"durable_", "big"),))
        done = support.durable_pg("upgrade", "--url", db.url("mig"), "--wait", "0.3")
        pid = holder.info.backend_pid
    assert done.returncode == 4
    assert "after 0.3 s of waiting" in done.stderr
    assert f"backend {pid} of mig" in done.stderr


def test_a_lock_on_a_table_ends_the_upgrade_with_the_file_in_the_message(db: Database, package: Path) -> None:
    add_revision(package)
    with db.superuser() as blocker:
        blocker.execute("lock table pg_catalog.pg_proc in exclusive mode")
        done = support.durable_pg("upgrade", "--url", db.url("mig"), "--lock-timeout", "0.2", root=package)
    assert done.returncode == 4, done.stderr
    assert "0002_touch_act_as.sql, sql/ground/identity.sql: " in done.stderr
    assert migrate.current(db.url("mig")) == "0001"


def test_current_writes_nothing(empty_database: Database) -> None:
    assert migrate.current(empty_database.url("mig")) is None
    with empty_database.superuser() as root:
        assert value(root, "select count(*) from pg_namespace where nspname = 'durable'") == 0


def test_current_works_for_the_migration_login_and_an_auditor_only(db: Database) -> None:
    assert migrate.current(db.url("mig")) == migrate.head()
    assert migrate.current(db.url("auditor")) == migrate.head()
    with pytest.raises(migrate.LoginIsRuntime):
        migrate.current(db.url("app"))


def test_a_database_newer_than_the_package_is_refused(db: Database, package: Path) -> None:
    add_revision(package)
    assert support.durable_pg("upgrade", "--url", db.url("mig"), root=package).returncode == 0
    before = catalog.read(db.url("mig"))

    for command in (["upgrade"], ["downgrade", "--to", "base"], ["check"]):
        done = support.durable_pg(*command, "--url", db.url("mig"))
        assert done.returncode == 5, (command, done.stderr)
        assert "upgrade the package" in done.stderr
    assert catalog.read(db.url("mig")) == before


def test_a_session_setting_of_the_login_changes_nothing(empty_database: Database) -> None:
    with empty_database.superuser() as root:
        for setting in ("standard_conforming_strings = off", "search_path = public", "check_function_bodies = off"):
            root.execute(f"alter database {empty_database.name} set {setting}".encode())
    migrate.upgrade(empty_database.url("mig"))
    assert catalog.check(empty_database.url("mig")) == []


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg", "postgresql+asyncpg"])
def test_every_spelling_of_the_url_is_understood(db: Database, scheme: str) -> None:
    url = db.url("mig").replace("postgresql://", f"{scheme}://")
    assert migrate.current(url) == migrate.head()
