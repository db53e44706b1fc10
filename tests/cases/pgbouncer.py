"""A pgbouncer in transaction mode, where the machine has one."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from os import getuid
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from tests.support.harness import Database
from tests.support.servers import PASSWORD

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@contextmanager
def in_front_of(db: Database, login: str, connections: int) -> Iterator[str]:
    """Start it, with so many connections to the server, and return the address that leads to the database."""
    assert PROGRAM is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with TemporaryDirectory(prefix="pgbouncer-") as directory:
        settings = Path(directory, "pgbouncer.ini")
        settings.write_text(
            f"""
            [databases]
            {db.name} = host={db.server.host} port={db.server.port} user={login} password={PASSWORD}
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = {port}
            unix_socket_dir =
            auth_type = any
            pool_mode = transaction
            default_pool_size = {connections}
            server_reset_query =
            ignore_startup_parameters = extra_float_digits
            """.replace("            ", ""),
            "utf-8",
        )
        settings.chmod(0o644)
        Path(directory).chmod(0o755)
        # It refuses to be root; a socket of the embedded server is reached by the server's own user only.
        user = ["--user", _owner(db.server.host)] if getuid() == 0 else []
        process = subprocess.Popen([PROGRAM, "--quiet", *user, str(settings)])
        try:
            url = f"postgresql://{login}@127.0.0.1:{port}/{db.name}"
            _wait_until_it_answers(url, process)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=10)


def _owner(host: str) -> str:
    return Path(host).owner() if host.startswith("/") else "nobody"


def _wait_until_it_answers(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
