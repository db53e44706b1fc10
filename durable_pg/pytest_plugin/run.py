"""A test run: its processes share one server, which the first that needs it prepares and the one that began ends.

They meet in a directory. Nothing but the standard library is needed to begin a run.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durable_pg._embedded.places import temporary_base
from durable_pg._embedded.signals import undisturbed
from durable_pg.pytest_plugin.errors import URL, Unreachable, Unusable

if TYPE_CHECKING:
    from durable_pg.pytest_plugin.server import FixtureServer

# Databases and logins of a run are named after it: durable_pytest_ and what follows is random.
PREFIX = "durable_pytest_"
LOCK, BEGUN, PREPARED, DATA = "lock", "begun", "prepared.json", "data"


class SharedRun:
    """One run of pytest, whatever number of processes it has."""

    def __init__(self, directory: Path, given: str | None) -> None:
        self.directory = directory
        self._given = given
        self._name = directory.name

    @classmethod
    def made(cls, url: str | None) -> SharedRun:
        """Begin a run on the server at `url`, else the one in DURABLE_PG_TEST_URL, else an embedded one.

        Its directory is made when the server is asked for.
        """
        return cls.taken(temporary_base() / f"{PREFIX}{secrets.token_hex(4)}", url)

    @classmethod
    def taken(cls, directory: str | Path, url: str | None) -> SharedRun:
        """Take part in a run that meets in this directory."""
        return cls(Path(directory), os.environ.get(URL) or None if url is None else url)

    def server(self) -> FixtureServer:
        """The run's server with its template, prepared by whichever process asks first. Raises Unusable."""
        from durable_pg.pytest_plugin.server import FixtureServer  # noqa: PLC0415

        with self._locked() as lock:
            file = self.directory / PREPARED
            if not file.exists():
                _write(file, self._prepare(lock))
            facts = json.loads(file.read_text(encoding="utf-8"))
        if "unusable" in facts:
            raise Unusable(facts["unusable"])
        return FixtureServer(**facts)

    def _prepare(self, lock: int) -> dict[str, Any]:
        """What the other processes need to know, or why there is nothing to know: none of them tries again."""
        from durable_pg.pytest_plugin.server import prepare  # noqa: PLC0415

        (self.directory / BEGUN).touch()
        try:
            url = self._embedded(lock) if self._given is None else self._given
            return prepare(url, self._name).facts()
        except Unusable as error:
            if isinstance(error, Unreachable) and self._given is not None:
                (self.directory / BEGUN).unlink()
            return {"unusable": str(error)}

    def _embedded(self, lock: int) -> str:
        from durable_pg.pytest_plugin import embedded  # noqa: PLC0415

        return embedded.start(self.directory / DATA, self._name, lock)

    def end(self) -> None:
        """Remove the run's databases and logins, or its whole server. Does nothing the second time."""
        if not self.directory.exists():
            return
        with undisturbed(), self._locked():
            if (self.directory / BEGUN).exists():
                self._remove()
            shutil.rmtree(self.directory, ignore_errors=True)

    def _remove(self) -> None:
        if self._given is not None:
            from durable_pg.pytest_plugin.server import remove  # noqa: PLC0415

            problem = remove(self._given, self._name)
        else:
            from durable_pg.pytest_plugin import embedded  # noqa: PLC0415

            problem = embedded.stop(self.directory / DATA)
        if problem:
            sys.stderr.write(f"durable_pg: {problem}\n")

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Work on the server alone; the run's other processes wait."""
        self.directory.mkdir(exist_ok=True)
        # When pytest runs as root, the embedded server's own user must get to its data.
        self.directory.chmod(0o711)
        lock = os.open(self.directory / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (self.directory / LOCK).exists():
                raise Unusable("the test run has ended")
            yield lock
        finally:
            # Closed and not unlocked: an initdb that outlives its worker holds it until it ends.
            os.close(lock)


def _write(file: Path, facts: dict[str, Any]) -> None:
    """Write what holds passwords."""
    file.touch(mode=0o600)
    file.write_text(json.dumps(facts), encoding="utf-8")
