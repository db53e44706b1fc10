"""How people write an address, what they are told when it leads nowhere, and that no password is ever told."""

import logging
import time
import traceback
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from durable_pg import Durable
from durable_pg._wire.address import VARIABLES
from durable_pg.errors import ArgumentInvalid, CannotConnect, DurableError
from tests.client.fake_server import NOBODY, silent, that_says
from tests.client.proxy import Proxy, in_front_of
from tests.support.rented import Rented

PARTS = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE", "password": "PGPASSWORD"}
SPELLINGS: dict[str, Callable[[str], str]] = {
    "postgres": lambda url: url.replace("postgresql://", "postgres://"),
    "postgresql": lambda url: url,
    "psycopg": lambda url: url.replace("postgresql://", "postgresql+psycopg://"),
    "asyncpg": lambda url: url.replace("postgresql://", "postgresql+asyncpg://").replace("sslmode=", "ssl="),
    "upper case": lambda url: url.replace("postgresql://", "POSTGRESQL://"),
    "key=value": make_conninfo,
}
# Written plainly, in quotation marks or escaped: none of it may be seen.
PASSWORD = "s3cret/w0rd@home"  # noqa: S105  # of nobody


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, *PARTS.values()):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def proxy(db: Rented) -> Iterator[Proxy]:
    with in_front_of(db) as proxy:
        yield proxy


def reach(url: str | None) -> None:
    with Durable.from_url(url, max_size=1) as durable:
        durable.act_as("T1", "U1").list_sessions()


def unreachable(url: str | None) -> CannotConnect:
    """Make a client that can't be opened, and is not for long in saying so."""
    start = time.monotonic()
    with pytest.raises(CannotConnect) as caught:
        reach(url)
    assert time.monotonic() - start < 10
    assert caught.value.may_have_taken_effect is False
    return caught.value


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_an_address_is_understood(proxy: Proxy, spelling: str) -> None:
    reach(SPELLINGS[spelling](proxy.url()))
    assert len(proxy.statements) == 1


@pytest.mark.parametrize("spelling", ["asyncpg", "psycopg"])
def test_tls_that_the_server_does_not_speak_is_told(spelling: str) -> None:
    with that_says("no TLS") as address:
        error = unreachable(SPELLINGS[spelling](f"{address}?sslmode=require"))
    assert "sslmode" in error.hint


@pytest.mark.parametrize("variable", VARIABLES)
def test_without_an_address_the_variables_are_asked(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, proxy.url())
    reach(None)
    assert len(proxy.statements) == 1


def test_its_own_variable_comes_before_that_of_everybody(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", NOBODY)
    monkeypatch.setenv("DURABLE_PG_URL", proxy.url())
    monkeypatch.setenv("PGHOST", "nowhere.invalid")
    reach(None)
    assert len(proxy.statements) == 1


def test_the_variables_of_libpq_come_last(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    given = conninfo_to_dict(proxy.url())
    for part, variable in PARTS.items():
        monkeypatch.setenv(variable, str(given[part]))
    monkeypatch.setenv("PGSSLMODE", "disable")
    monkeypatch.setenv("PGGSSENCMODE", "disable")
    reach(None)
    assert len(proxy.statements) == 1


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("mysql://app@db/shop", "mysql://"),
        ("sqlite:///shop.db", "sqlite://"),
        ("shop", "can't be read"),
        ("host=db nonsense", "can't be read"),
        ("postgresql://app@db:port/shop", "not a number"),
        ("postgresql://app@db/shop?nonsense=1", "can't be read"),
        ("postgresql://app:se/cret@db/shop", "percent-encoded"),
    ],
)
def test_what_is_no_address_is_refused_at_once(url: str, match: str) -> None:
    with pytest.raises(ArgumentInvalid, match=match) as caught:
        Durable.from_url(url)
    assert (caught.value.sqlstate, caught.value.column) == ("22W03", "url")
    assert caught.value.may_have_taken_effect is False


def test_a_variable_that_is_no_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "mysql://app@db/shop")
    with pytest.raises(ArgumentInvalid) as caught:
        Durable.from_url()
    assert "DATABASE_URL" in caught.value.hint


def test_a_port_where_nobody_listens() -> None:
    error = unreachable(NOBODY)
    assert error.message == "can't connect to Postgres"
    assert "No server answers there" in error.hint


def test_a_socket_that_is_not_there() -> None:
    error = unreachable("host=/nowhere dbname=shop user=app")
    assert "socket's directory" in error.hint


def test_a_host_that_has_no_address() -> None:
    error = unreachable("postgresql://app@nowhere.invalid/shop")
    assert "no host of that name" in error.hint


def test_a_host_that_says_nothing() -> None:
    with silent() as address:
        error = unreachable(f"{address}?connect_timeout=2")
    assert "does not answer" in error.hint


def test_a_database_that_is_not_there(proxy: Proxy) -> None:
    error = unreachable(proxy.url().replace(proxy.db.name, "nowhere"))
    assert '"nowhere" does not exist' in error.detail
    assert "durable-pg upgrade" in error.hint


def test_a_login_that_is_not_there(proxy: Proxy) -> None:
    error = unreachable(proxy.url("nobody"))
    # A server that asks for a password doesn't say more.
    assert "name is wrong" in error.hint or "login or its password is wrong" in error.hint


@pytest.mark.parametrize(
    ("sqlstate", "words", "hint"),
    [
        ("28P01", 'password authentication failed for user "app"', "percent-encoded"),
        ("28000", 'no pg_hba.conf entry for host "10.0.0.1", user "app"', "pg_hba.conf"),
        ("28000", 'role "durable_app" is not permitted to log in', "Use a login"),
        ("53300", "sorry, too many clients already", "no connection to spare"),
        ("53300", "remaining connection slots are reserved for roles with the SUPERUSER attribute", "to spare"),
        ("57P03", "the database system is starting up", "in a moment"),
        ("57P03", "the database system is shutting down", "in a moment"),
    ],
)
def test_what_a_server_says_that_admits_nobody(sqlstate: str, words: str, hint: str) -> None:
    with that_says(words, sqlstate) as address:
        error = unreachable(address)
    assert words in error.detail
    assert hint in error.hint


def test_where_the_address_came_from_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", NOBODY)
    assert "The database is the one in DATABASE_URL." in (unreachable(None)).hint


def everything_about(error: BaseException) -> str:
    """Return all that a log or a monitor could show of an error."""
    found, seen, todo = "".join(traceback.format_exception(error)), set(), [error]
    while todo:
        current = todo.pop()
        if id(current) not in seen:
            seen.add(id(current))
            found += f"{current} {current!r} {current.args} {vars(current)}"
            todo += [layer for layer in (current.__cause__, current.__context__) if layer is not None]
    return found


def secret_addresses() -> list[str]:
    escaped = quote(PASSWORD, safe="")
    place = NOBODY.partition("@")[2]
    return [
        f"postgresql://app:{escaped}@{place}",
        f"postgresql://app:{PASSWORD}@{place}",
        f"postgresql://app:{PASSWORD.replace('@', '/')}@{place}",
        f"postgresql://app:{PASSWORD.replace('/', '')}@{place}",
        f"postgresql://app:{escaped}%@{place}",
        f"postgresql://app@{place}?password={escaped}",
        f"postgresql://app@{place}?password={escaped}&nonsense=1",
        f"mysql://app:{escaped}@{place}",
        f"host=127.0.0.1 port=1 user=app password={PASSWORD}",
        f"host=127.0.0.1 port=1 user=app password=x {PASSWORD}",
        f"host=127.0.0.1 port=1 user=app password='{PASSWORD}",
        f"{PASSWORD}",
        f"postgresql://app@127.0.0.1:{PASSWORD}/shop",
    ]


@pytest.mark.parametrize("place", range(len(secret_addresses())))
def test_a_password_is_never_told(place: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises((ArgumentInvalid, CannotConnect)) as caught:
        reach(secret_addresses()[place])
    assert isinstance(caught.value, DurableError)
    told = everything_about(caught.value) + caplog.text
    for piece in ("s3cret", "w0rd"):
        assert piece not in told


def test_a_password_is_not_told_by_a_pool_whose_server_goes_away(
    proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    address = proxy.url().replace(":durable@", f":{quote(PASSWORD, safe='')}@")
    if proxy.db.server.password:
        pytest.skip("this server looks at passwords")
    with Durable.from_url(address, max_size=1, timeout=1) as durable:
        me = durable.act_as("T1", "U1")
        me.list_sessions()
        proxy.refuse()
        with pytest.raises(CannotConnect) as caught:
            me.list_sessions()
        told = f"{everything_about(caught.value)} {caplog.text} {durable!r} {vars(durable)} {me!r} {vars(me)}"
    assert "error connecting" in caplog.text
    assert "s3cret" not in told
