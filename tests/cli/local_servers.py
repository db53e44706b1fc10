"""A directory for durable-pg up, and the commands in it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from durable_pg._embedded.logins import LOGINS
from tests.migrations.support import start
from tests.support.cli import ROOT, environment
from tests.support.servers import memory

FRONT_LOGINS = tuple(login for login in LOGINS if login != "mig")


@dataclass(frozen=True)
class Place:
    """A directory that a server is, or will be, in."""

    directory: Path

    def run(
        self, command: str, *arguments: str, stdin: int | None = None, extra: Mapping[str, str] | None = None
    ) -> "CompletedProcess[str]":
        """Run a command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "durable_pg", command, "--directory", str(self.directory), *arguments],
            env=environment(ROOT, extra),
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=tempfile.gettempdir(),
        )

    def facts(self, command: str, *arguments: str) -> dict[str, Any]:
        """Run a command that must do, and return what it says in JSON."""
        done = self.run(command, *arguments, "--json")
        assert done.returncode == 0, (done.stdout, done.stderr)
        facts: dict[str, Any] = json.loads(done.stdout)
        return facts

    def begin(self, command: str, *arguments: str) -> "subprocess.Popen[str]":
        """Start a command and leave it running."""
        return start(command, "--directory", str(self.directory), *arguments)

    def url(self, login: str) -> str:
        """Return the URL that up prints, without the time that up takes."""
        kept = json.loads((self.directory / "durable-pg.json").read_text())
        return f"postgresql://{login}:{kept['passwords'][login]}@127.0.0.1:{kept['port']}/durable"

    def connect(self, login: str = "app") -> psycopg.Connection[Any]:
        """Connect as a login, in autocommit."""
        return psycopg.connect(self.url(login), autocommit=True)

    def socket_url(self, login: str, database: str = "durable") -> str:
        """Return where a login would connect through the socket."""
        port = json.loads((self.directory / "durable-pg.json").read_text())["port"]
        return make_conninfo(host=str(self.directory / "data"), port=port, user=login, dbname=database)

    def is_up(self) -> bool:
        """Whether a server runs here, as far as its pid file tells."""
        return self.signal(0)

    def signal(self, number: int) -> bool:
        """Send the server a signal; say whether there is one."""
        file = self.directory / "data" / "postmaster.pid"
        try:
            os.kill(int(file.read_text().splitlines()[0]), number)
        except (FileNotFoundError, ProcessLookupError, IndexError):
            return False
        return True


@contextmanager
def a_place() -> Iterator[Place]:
    """Yield a directory that is not there yet; in the end nothing of it is left, and no server."""
    # Not below pytest's own directory, which root's server can't enter, and short.
    base = Path(tempfile.mkdtemp(prefix="dpg-", dir=memory()))
    base.chmod(0o711)
    place = Place(base / "home")
    try:
        yield place
    finally:
        done = place.run("down", "--remove", "--yes")
        left = place.signal(signal.SIGQUIT)
        shutil.rmtree(base, ignore_errors=True)
        assert done.returncode == 0, done.stderr
        assert not left


def wait_for_file(file: Path, job: "subprocess.Popen[str]") -> None:
    """Wait until a running command has made a file."""
    deadline = time.monotonic() + 60
    while not file.exists():
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < deadline, f"{file} never came"
        time.sleep(0.002)
