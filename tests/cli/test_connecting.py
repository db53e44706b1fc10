"""Which database is meant, and what is said when it can't be had: the cause, what to do, and never a password."""

import pytest

from durable_pg._wire import address
from tests.support.cli import durable_pg
from tests.support.harness import Database
from tests.support.servers import Server

SECRET = "hunter2hunter2"  # noqa: S105


def test_an_empty_url_is_refused_and_never_the_environments(db: Database) -> None:
    for option in (("--url", ""), ("--url=",), ("--url", " ")):
        done = durable_pg("current", *option, extra={"DURABLE_PG_URL": db.url("mig")})
        assert (done.returncode, done.stdout) == (2, "")
        assert "the URL is empty" in done.stderr


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://mig@127.0.0.1:1/x", "No server answers there"),
        ("postgresql://mig@nohost.invalid/x", "no host of that name"),
        ("host=/nowhere dbname=x", "the socket's directory"),
    ],
)
def test_the_hint_depends_on_the_cause(url: str, words: str) -> None:
    done = durable_pg("current", "--url", url)
    assert done.returncode == 6
    assert words in done.stderr
    assert "--url" not in done.stderr
    done = durable_pg("current", extra={"DATABASE_URL": url})
    assert words in done.stderr
    assert "The database is the one in DATABASE_URL." in done.stderr


def test_a_database_that_is_not_there_is_to_be_created_for_this_login(server: Server) -> None:
    done = durable_pg("upgrade", "--url", server.url("Not there", "mig"))
    assert done.returncode == 6
    assert 'create database "Not there" owner mig template template0' in done.stderr


def test_a_role_that_can_not_log_in_and_one_that_is_not_there(server: Server) -> None:
    assert "Use a login" in durable_pg("current", "--url", server.url("postgres", "durable_app")).stderr
    assert "DBA must create this login" in durable_pg("current", "--url", server.url("postgres", "nobody_here")).stderr


def test_without_any_database_given_it_says_how_to_give_one() -> None:
    done = durable_pg("current", extra={"PGHOST": "/nowhere"})
    assert done.returncode == 6
    assert "Give a URL (--url)" in done.stderr


@pytest.mark.parametrize("as_json", [(), ("--json",)])
@pytest.mark.parametrize(
    "password", [f"{SECRET}@{SECRET}", f"{SECRET}/{SECRET}", f"{SECRET}%{SECRET}", f"{SECRET} {SECRET}"]
)
def test_a_password_that_breaks_the_url_is_not_repeated(password: str, as_json: tuple[str, ...]) -> None:
    done = durable_pg("current", "--url", f"postgresql://mig:{password}@127.0.0.1:1/x", *as_json)
    assert done.returncode == 2
    assert "percent-encoded" in done.stderr
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://mig:{SECRET}@127.0.0.1:1/x",
        f"postgresql://mig:{SECRET}#{SECRET}@127.0.0.1:1/x",
        f"postgresql://mig@127.0.0.1:1/x?password={SECRET}",
        f"postgresql://mig:{SECRET}/x",
        f"postgresql://mig:{SECRET}",
        f"mysql://mig:{SECRET}@db/x",
        f"mig:{SECRET}://db",
        f"host=127.0.0.1 port=1 password={SECRET}",
        f"host=127.0.0.1 port=1 password=my {SECRET}",
    ],
)
def test_no_password_is_ever_printed(url: str) -> None:
    done = durable_pg("upgrade", "--url", url, "--json")
    assert done.returncode in {2, 6}
    assert SECRET not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://mig:p%40ss@db/shop",
        "postgresql://mig@db:5432/shop",
        "postgresql://db:5432/sh@op",
        "postgresql://mig@/shop?host=/tmp&options=-c%20a=b@c",
        "postgresql://mig:secret@[::1]:5432/shop?application_name=a:b@c",
    ],
)
def test_a_good_url_passes_as_it_is(url: str) -> None:
    assert address.conninfo(url) == url
