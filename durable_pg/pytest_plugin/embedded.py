"""The embedded Postgres of a test run, which outlives the process that started it."""

from __future__ import annotations

import secrets
from pathlib import Path

from psycopg import sql

from durable_pg._embedded.cluster import HOST, Cluster
from durable_pg._embedded.errors import NoEmbeddedServer, ServerError
from durable_pg._embedded.programs import programs
from durable_pg._embedded.signals import undisturbed
from durable_pg._embedded.temporary import FOR_TESTS, SETTINGS
from durable_pg.pytest_plugin.errors import URL, Unusable


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
    # Over TCP, since an agent under test may be in any language.
    cluster = Cluster(data)
    try:
        with undisturbed():
            cluster.make(lock, settings=SETTINGS + FOR_TESTS, sync=False)
            port = cluster.start_anywhere().port
    except ServerError as error:
        told = "\n".join(filter(None, (error.message, error.detail, error.hint)))
        raise Unusable(f"durable_pg's embedded Postgres did not start: {told}") from None
    return _admin(cluster, f"{name}_admin", port)


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
        if cluster.begun:
            cluster.stop()
        cluster.remove()
    except (ServerError, OSError) as error:
        return f"the embedded server in {data} is not removed: {error.args[0]}"
    return ""
