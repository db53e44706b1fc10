"""What a shell, a CI job and a person see of durable-pg: exit codes, streams, JSON."""

import json
import signal
import subprocess
import time

import pytest

from durable_pg import __version__, migrate
from durable_pg.migrate import catalog
from tests.migrations.support import start
from tests.support.cli import durable_pg
from tests.support.harness import Database, value
from tests.support.servers import Server

COMMANDS = ("upgrade", "downgrade", "current", "sql", "check")


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_teaches(command: tuple[str, ...]) -> None:
    done = durable_pg(*command, "--help")
    assert done.returncode == 0
    assert len(done.stdout.split()) > 60 if not command else "--json" in done.stdout


def test_help_lists_the_exit_codes() -> None:
    words = " ".join(durable_pg("--help").stdout.split())
    for code in (
        "0 done",
        "2 wrong usage",
        "3 a DBA must act",
        "4 waited",
        "5 the database is newer",
        "6 can't",
        "7 refused",
    ):
        assert code in words


def test_without_a_command_it_explains_itself_and_exits_2() -> None:
    done = durable_pg()
    assert done.returncode == 2
    assert "upgrade" in done.stdout + done.stderr


def test_upgrade_and_current_tell_what_they_found(empty_database: Database) -> None:
    url = empty_database.url("mig")
    assert durable_pg("current", "--url", url).stdout.startswith("none")
    assert durable_pg("upgrade", "--url", url).stdout == f"went from base to {migrate.head()}\n"
    assert durable_pg("upgrade", "--url", url).stdout == f"already at {migrate.head()}\n"
    assert durable_pg("current", "--url", url).stdout == f"{migrate.head()}\n"


def test_json_is_one_object_on_stdout(db: Database) -> None:
    url = db.url("mig")
    upgraded = json.loads(durable_pg("upgrade", "--url", url, "--json").stdout)
    assert upgraded == {
        "before": migrate.head(),
        "after": migrate.head(),
        "steps": 0,
        "waited": False,
        "grants": [],
        "warnings": [],
    }
    assert json.loads(durable_pg("current", "--url", url, "--json").stdout) == {
        "current": migrate.head(),
        "head": migrate.head(),
        "installed": True,
    }
    assert json.loads(durable_pg("check", "--url", url, "--json").stdout)["differences"] == []
    assert json.loads(durable_pg("sql", "--json").stdout)["sql"] == migrate.offline_sql()


@pytest.mark.parametrize("variable", ["DURABLE_PG_URL", "DATABASE_URL"])
def test_the_database_comes_from_the_environment(db: Database, variable: str) -> None:
    assert durable_pg("current", extra={variable: db.url("mig")}).returncode == 0


def test_durable_pg_url_goes_before_database_url_and_libpqs_variables_come_last(db: Database) -> None:
    wrong = "postgresql://nobody@127.0.0.1:1/nowhere"
    assert durable_pg("current", extra={"DURABLE_PG_URL": db.url("mig"), "DATABASE_URL": wrong}).returncode == 0
    libpq = {
        "PGHOST": db.server.host,
        "PGPORT": str(db.server.port),
        "PGUSER": "mig",
        "PGDATABASE": db.name,
        "PGPASSWORD": "durable",
    }
    assert durable_pg("current", extra=libpq).stdout == f"{migrate.head()}\n"


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_no_server_is_exit_6_without_a_traceback(as_json: tuple[str, ...]) -> None:
    for command in (["upgrade"], ["downgrade", "--to", "base"], ["current"], ["check"]):
        done = durable_pg(*command, "--url", "postgresql://mig@127.0.0.1:1/x", *as_json)
        assert done.returncode == 6, (command, done.stderr)
        assert "can't connect" in done.stderr
        assert "Traceback" not in done.stderr
        assert bool(done.stdout) == bool(as_json)
        if as_json:
            assert json.loads(done.stdout)["error"] == "CannotConnect"


def test_usage_errors_are_exit_2(db: Database) -> None:
    url = db.url("mig")
    for arguments in (
        ["upgrade", "--to", "0099", "--url", url],
        ["upgrade", "--wait", "-1", "--url", url],
        ["downgrade", "--url", url],
        ["current", "--url", "mysql://root@localhost/x"],
        ["sql", "head:base"],
        ["sql", "nonsense"],
        ["frobnicate"],
    ):
        done = durable_pg(*arguments)
        assert done.returncode == 2, (arguments, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr


def test_a_downgrade_that_would_drop_rows_is_exit_7(db: Database) -> None:
    with db.as_app() as app:
        app.execute("select durable.open_session(app_name => 'support')")
    done = durable_pg("downgrade", "--to", "base", "--url", db.url("mig"))
    assert done.returncode == 7
    assert "durable.sessions" in done.stderr
    assert "--drop-data" in done.stderr
    assert migrate.current(db.url("mig")) == migrate.head()

    done = durable_pg("downgrade", "--to", "base", "--drop-data", "--url", db.url("mig"))
    assert (done.returncode, done.stdout) == (0, f"went from {migrate.head()} to base\n")


def test_sql_writes_both_ways(db: Database) -> None:
    up, down = durable_pg("sql"), durable_pg("sql", "--downgrade", "--drop-data")
    assert "create table durable.events" in up.stdout
    assert "drop table durable.events;" in down.stdout
    assert "set local durable.drop_data = 'on';" in down.stdout
    assert (up.returncode, down.returncode) == (0, 0)


@pytest.mark.parametrize("command", [("upgrade",), ("downgrade", "--to", "base"), ("current",), ("check",)])
def test_an_application_login_is_sent_away_and_no_dba_is_asked(db: Database, command: tuple[str, ...]) -> None:
    done = durable_pg(*command, "--url", db.url("app"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "app is a runtime login (durable_app); it m" in done.stderr
    assert "migration login" in done.stderr
    assert "DBA" not in done.stderr


def test_a_superuser_is_warned_in_words_and_in_json(db: Database) -> None:
    url = db.server.url(db.name)
    done = durable_pg("upgrade", "--url", url)
    assert (done.returncode, done.stdout) == (0, f"already at {migrate.head()}\n")
    assert done.stderr.startswith(f"warning: {db.server.user} is a superuser")
    assert len(json.loads(durable_pg("upgrade", "--url", url, "--json").stdout)["warnings"]) == 1


def test_check_says_in_one_line_that_nothing_is_installed(empty_database: Database) -> None:
    url = empty_database.url("mig")
    line = f"in database {empty_database.name} (as mig): run durable-pg upgrade\n"
    done = durable_pg("check", "--url", url)
    assert (done.returncode, done.stdout) == (1, f"durable_pg is not installed {line}")
    facts = json.loads(durable_pg("check", "--url", url, "--json").stdout)
    assert (facts["installed"], facts["differences"]) == (False, [])

    migrate.upgrade(url)
    migrate.downgrade(url, to="base")
    assert durable_pg("check", "--url", url).stdout == f"durable_pg is at base {line}"
    assert durable_pg("current", "--url", url).stdout.startswith("at base")


def test_an_unknown_revision_is_answered_with_the_known_ones(empty_database: Database) -> None:
    for command in ("upgrade", "downgrade"):
        done = durable_pg(command, "--to", "9999", "--url", empty_database.url("mig"))
        assert done.returncode == 2
        assert "there is no revision 9999" in done.stderr
        assert "Known are: base, 0001" in done.stderr
    assert not migrate.is_installed(empty_database.url("mig"))


def test_version() -> None:
    done = durable_pg("--version")
    assert (done.returncode, done.stdout) == (0, f"durable-pg {__version__}, schema {migrate.head()}\n")


def test_statements_are_in_the_json_and_not_announced_on_stderr(server: Server) -> None:
    # Nobody but a superuser may make anything in template1.
    done = durable_pg("upgrade", "--url", server.url("template1", "mig"), "--json")
    assert done.returncode == 3
    assert any("grant create on database template1" in line for line in json.loads(done.stdout)["statements"])
    assert "A DBA must run" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_leaves_nothing_half_done(empty_database: Database, number: signal.Signals) -> None:
    url = empty_database.url("mig")
    with empty_database.superuser() as blocker:
        blocker.execute("lock table pg_catalog.pg_policy in exclusive mode")
        job = start("upgrade", "--url", url, "--lock-timeout", "60")
        wait_for_lock(empty_database, job)
        job.send_signal(number)
        out, err = job.communicate(timeout=30)
    assert job.returncode == 130, (out, err)
    assert "Traceback" not in err
    assert "interrupted" in err
    assert migrate.current(url) is None
    assert durable_pg("upgrade", "--url", url).returncode == 0
    assert catalog.check(url) == []


def wait_for_lock(db: Database, job: subprocess.Popen[str]) -> None:
    with db.server.connect(db.name) as root:
        for _ in range(600):
            if value(root, "select count(*) from pg_locks where not granted and relation = 'pg_policy'::regclass"):
                return
            assert job.poll() is None, job.communicate()
            time.sleep(0.05)
    pytest.fail("the upgrade never came to its first policy")
