"""The embedded Postgres of a test run, which outlives the process that started it. Serves durable_pg._testing."""

from __future__ import annotations

import random
import secrets
from pathlib import Path

from psycopg import sql

from durable_pg._embedded.cluster import HOST, Cluster, is_free
from durable_pg._embedded.home import PORTS
from durable_pg._embedded.programs import programs
from durable_pg._testing import URL, Unusable
from durable_pg.server import SETTINGS, NoEmbeddedServer, ServerError, undisturbed

MORE_SETTINGS = """
autovacuum = off
max_connections = 200
"""
ATTEMPTS = 5
PID_FILE = "postmaster.pid"


def start(data: Path, name: str, lock: int) -> str:
    """Make a server in `data` and start it; return the URL of its admin, who is no superuser. Raises Unusable.

    `lock`: a file descriptor that the server's making holds open.
    """
    try:
        programs()
    except NoEmbeddedServer:
        raise Unusable(
            "durable_pg has no Postgres for its fixtures: pip install 'durable-pg[testing]' for an embedded one,"
            f" or name a throw-away server with --durable-pg-url or {URL}"
        ) from None
    cluster = Cluster(data)
    try:
        with undisturbed():
            cluster.make(lock)
            with (data / "postgresql.conf").open("a", encoding="utf-8") as file:
                file.write(SETTINGS + MORE_SETTINGS)
            port = _start(cluster)
    except ServerError as error:
        told = "\n".join(filter(None, (error.message, error.detail, error.hint)))
        raise Unusable(f"durable_pg's embedded Postgres did not start: {told}") from None
    return _admin(cluster, f"{name}_admin", port)


def _start(cluster: Cluster) -> int:
    """Start on a port that another program may take before the server does; then on another one."""
    for attempt in range(1, ATTEMPTS + 1):
        port = next(filter(is_free, random.sample(PORTS, len(PORTS))), PORTS.start)
        try:
            return cluster.start(port).port
        except ServerError:
            if attempt == ATTEMPTS or is_free(port) or (cluster.data / PID_FILE).exists():
                raise
    raise AssertionError("unreachable")


def _admin(cluster: Cluster, login: str, port: int) -> str:
    """Make a login that comes in over TCP, where the superuser can't."""
    password = secrets.token_urlsafe(24)
    with cluster.superuser() as root:
        root.execute(
            sql.SQL("create role {} login createdb createrole password {}").format(
                sql.Identifier(login), sql.Literal(password)
            )
        )
        # To drop a database under an agent that is still connected.
        root.execute(sql.SQL("grant pg_signal_backend to {}").format(sql.Identifier(login)))
    return f"postgresql://{login}:{password}@{HOST}:{port}/postgres?sslmode=disable"


def stop(data: Path) -> str:
    """Stop the server if it is up and delete its data; return what went wrong, for a person."""
    cluster = Cluster(data)
    try:
        # One that came up too late for its start to be a success is there as well.
        if (data / PID_FILE).exists():
            cluster.stop()
        cluster.remove()
    except (ServerError, OSError) as error:
        return f"the embedded server in {data} is not removed: {error}"
    return ""
