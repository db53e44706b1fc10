"""A server for development that stays up: the embedded Postgres in a directory, with a login for each role.

from durable_pg._embedded import local

server = local.up(local.default_directory())
server.urls["app"]                               # postgresql://app:...@127.0.0.1:21345/durable
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from durable_pg import migrate
from durable_pg._embedded.cluster import HOST, Cluster
from durable_pg._embedded.errors import NoEmbeddedServer, ServerError
from durable_pg._embedded.home import Home, Kept, Removed
from durable_pg._embedded.logins import LOGINS, MIGRATOR, Credentials, provision
from durable_pg._embedded.programs import programs
from durable_pg.migrate.roles import FRONT

__all__ = ["LOGINS", "Ended", "LocalServer", "default_directory", "down", "is_made", "psql", "up"]

DATABASE = "durable"
# What a person sets about dates and the like stays; where and how psql connects is ours to say.
_KEPT_VARIABLES = {"PGOPTIONS", "PGTZ", "PGDATESTYLE", "PGCLIENTENCODING"}


@dataclass(frozen=True)
class LocalServer:
    """A server that is up. `started`: by this call. `report`: what its migration did."""

    directory: Path
    pid: int
    port: int
    postgres: str
    started: bool
    urls: Mapping[str, str]
    report: migrate.Report


class Ended(NamedTuple):
    """What down() found: whether a server was up, and whether data were removed."""

    was_up: bool
    removed: bool


@contextmanager
def _as_server_error() -> Iterator[None]:
    """What the system or the server itself refuses is told in its own words."""
    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise ServerError(f"{where}{error.strerror or error}") from error
    except psycopg.Error as error:
        raise ServerError(f"the embedded server refused: {error}") from error


def default_directory(environ: Mapping[str, str] | None = None) -> Path:
    """Where a person's data belong: in XDG_DATA_HOME or ~/.local/share. For root, in /var/lib: the server, which is
    another user then, can't enter root's home.
    """
    if os.geteuid() == 0:
        return Path("/var/lib/durable-pg")
    given = Path((os.environ if environ is None else environ).get("XDG_DATA_HOME", ""))
    try:
        return (given if given.is_absolute() else Path.home() / ".local" / "share") / "durable-pg"
    except RuntimeError:
        raise ServerError("this user has no home directory", hint="Give --directory.", exit_code=2) from None


@_as_server_error()
def is_made(directory: Path) -> bool:
    """Whether up() has made this directory. Raises ServerError for one that is somebody else's."""
    return Home(directory).exists


@_as_server_error()
def up(directory: Path, *, port: int | None = None, tell: Callable[[str], None] = lambda _: None) -> LocalServer:
    """Start the server in `directory`, migrate it and see to its logins; what is done already is left as it is.

    `port`: where to listen from now on; without it a free one is chosen the first time, and kept. `tell` hears of each
    step that takes time. What fails or is interrupted leaves no server behind that was not up before, and the next
    call goes on from there. Raises ServerError, or a MigrationError.
    """
    programs()  # says what is missing before anything is made
    home = Home(directory)
    with home.locked(tell, make=True) as lock, _without_libpq_variables():
        cluster = Cluster(home.data)
        running = cluster.running()
        if running and port not in {None, running.port}:
            raise ServerError(
                f"the server is up on port {running.port}, not {port}",
                hint="First durable-pg down, then durable-pg up with the new port.",
                exit_code=2,
            )
        kept = home.keep(port, LOGINS)
        if not cluster.made:
            tell(f"Making a database in {home.directory}")
            cluster.make(lock)
        try:
            if not running:
                tell("Starting Postgres")
                cluster.start(kept.port)
            return _complete(cluster, home, kept, started=not running, tell=tell)
        except BaseException:
            if not running and cluster.running():
                cluster.stop()
            raise


@_as_server_error()
def down(directory: Path, *, remove: bool = False, tell: Callable[[str], None] = lambda _: None) -> Ended:
    """Stop the server; with `remove`, delete its data as well, and nothing that up() did not make."""
    home = Home(directory)
    with suppress(Removed), home.locked(tell) if home.exists else nullcontext():
        # Another process may have removed it while this one waited.
        if home.exists:
            return _end(Cluster(home.data), home, remove=remove, tell=tell)
    return Ended(was_up=False, removed=False)


@_as_server_error()
def psql(directory: Path, login: str, arguments: list[str]) -> tuple[str, list[str], dict[str, str]]:
    """Return what runs psql as `login`: program, arguments, environment (which holds the password)."""
    home = Home(directory)
    kept, running = home.kept(), Cluster(home.data).running()
    if not kept or not running:
        raise ServerError(f"no server is up in {home.directory}", hint="Run durable-pg up.", exit_code=6)
    environment = {
        **{name: text for name, text in os.environ.items() if not name.startswith("PG") or name in _KEPT_VARIABLES},
        "PGHOST": HOST,
        "PGPORT": str(running.port),
        "PGUSER": login,
        "PGDATABASE": DATABASE,
        "PGPASSWORD": kept.passwords[login],
        "PGAPPNAME": "durable-pg psql",
        "PGSSLMODE": "disable",
    }
    program = _psql_program()
    return program, [program, *arguments], environment


def _end(cluster: Cluster, home: Home, *, remove: bool, tell: Callable[[str], None]) -> Ended:
    was_up = cluster.running() is not None
    if was_up:
        tell("Stopping Postgres")
        cluster.stop()
    if remove:
        cluster.remove()
        home.remove()
    return Ended(was_up, remove)


def _psql_program() -> str:
    try:
        own = programs()[max(programs())] / "psql"
    except NoEmbeddedServer:
        own = None
    if own and own.exists():
        return str(own)
    found = shutil.which("psql")
    if found is None:
        raise ServerError("there is no psql here, neither the embedded one nor one in PATH")
    return found


def _complete(cluster: Cluster, home: Home, kept: Kept, *, started: bool, tell: Callable[[str], None]) -> LocalServer:
    """Make what is missing in a running server: logins, database, schema."""
    running = cluster.wait_until_ready()
    _provision(cluster, kept.passwords)
    urls = {
        login: f"postgresql://{login}:{password}@{HOST}:{running.port}/{DATABASE}"
        for login, password in kept.passwords.items()
    }
    tell("Bringing the schema up to date")
    report = migrate.upgrade(make_conninfo(urls[MIGRATOR], sslmode="disable"), logins={kind: kind for kind in FRONT})
    with cluster.superuser() as root:
        version = root.info.parameter_status("server_version") or ""
    return LocalServer(home.directory, running.pid, running.port, version, started, urls, report)


def _provision(cluster: Cluster, passwords: Mapping[str, str]) -> None:
    """Make the logins, whose names say their kind, and a database for the migrations."""
    with cluster.superuser() as root:
        provision(root, {kind: Credentials(kind, password) for kind, password in passwords.items()}, roles=False)
        if not root.execute("select 1 from pg_catalog.pg_database where datname = %s", (DATABASE,)).fetchone():
            root.execute(
                sql.SQL("create database {} owner {} template template0").format(
                    sql.Identifier(DATABASE), sql.Identifier(MIGRATOR)
                )
            )


@contextmanager
def _without_libpq_variables() -> Iterator[None]:
    """No PGSERVICE, PGOPTIONS or PGHOSTADDR of the person's leads our own connections elsewhere."""
    before = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PG")}
    try:
        yield
    finally:
        os.environ.update(before)
