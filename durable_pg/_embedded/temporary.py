"""A server in a temporary directory, which goes with everything in it."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from psycopg.conninfo import make_conninfo

from durable_pg._embedded.cluster import SUPERUSER, Cluster, Door
from durable_pg._embedded.errors import ServerError
from durable_pg._embedded.places import temporary_base
from durable_pg._embedded.programs import copy_within_reach
from durable_pg._embedded.signals import undisturbed

# Nothing in it needs to survive a power cut.
SETTINGS = """
fsync = off
full_page_writes = off
synchronous_commit = off
"""
# For a server that many tests share. Autovacuum would only disturb those that wait for locks.
FOR_TESTS = """
autovacuum = off
max_connections = 200
"""
# The directory lets nobody in but us, so whoever comes through the socket is who he says.
BY_SOCKET = Door(admission="local  all  all  trust\n", addresses="")
# Names the socket; no other server is in its directory.
PORT = 5432


class TemporaryServer(NamedTuple):
    """A running server: the URL of its superuser, and what stops and removes it."""

    url: str
    stop: Callable[[], None]

    def url_of(self, login: str, database: str) -> str:
        """Where a login connects; it needs no password."""
        return make_conninfo(self.url, user=login, dbname=database)


@contextmanager
def temporary_server(settings: str = "", parent: Path | None = None) -> Iterator[TemporaryServer]:
    """Have a server for the length of a block; see start_temporary."""
    server = start_temporary(settings, parent)
    try:
        yield server
    finally:
        server.stop()


def start_temporary(settings: str = "", parent: Path | None = None) -> TemporaryServer:
    """Start a server in a temporary directory.

    Works as root (the server then runs as a system user of its own) and as a user. `settings` are lines for
    postgresql.conf, `parent` is where its directory is made. Raises NoEmbeddedServer. Whoever is interrupted before he
    could stop it leaves that to the interpreter's exit.
    """
    cleanup = ExitStack()

    def stop() -> None:
        with undisturbed():
            cleanup.close()
            atexit.unregister(stop)

    atexit.register(stop)
    try:
        with undisturbed():
            return TemporaryServer(_start(settings, parent, cleanup), stop)
    except BaseException:
        stop()
        raise


def _start(settings: str, parent: Path | None, cleanup: ExitStack) -> str:
    base = Path(tempfile.mkdtemp(prefix="durable-pg-", dir=parent or temporary_base()))
    cleanup.callback(shutil.rmtree, base, ignore_errors=True)
    if os.geteuid() == 0:
        # The server's own user must get to its data, which only it can enter.
        base.chmod(0o711)
    cluster = Cluster(base / "pg", BY_SOCKET, copy_within_reach(base / "programs"))
    cluster.make(settings=SETTINGS + settings, sync=False)
    cleanup.callback(_end, cluster)
    cluster.start(PORT)
    return f"postgresql://{SUPERUSER}@/postgres?host={quote(str(cluster.data))}&port={PORT}"


def _end(cluster: Cluster) -> None:
    """Stop the server, also one that came up too late for its start to be a success."""
    try:
        if cluster.begun:
            cluster.stop()
    except ServerError:
        with suppress(OSError, ValueError, IndexError):
            os.kill(int(cluster.pid_file.read_text(encoding="utf-8").splitlines()[0]), signal.SIGQUIT)
