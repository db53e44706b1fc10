# Generated from test_restarted_async.py by tools/async_to_sync.py: change that.
"""A server that is really restarted under a pool of connections."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from durable_pg import Durable, migrate
from durable_pg._embedded.errors import NoEmbeddedServer
from durable_pg._embedded.programs import as_owner_of, programs, run_as
from durable_pg._embedded.temporary import start_temporary
from tests.client.disturbing import connected, wait_until
from tests.support.harness import Database
from tests.support.rented import Rented, stored
from tests.support.servers import Server

POOL = 5


@pytest.fixture(scope="module")
def own() -> Iterator[Rented]:
    """A database on a server of this module's own."""
    try:
        url, stop = start_temporary()
    except NoEmbeddedServer as error:
        pytest.skip(str(error))
    try:
        server = Server.at(url)
        server.provision()
        with server.connect() as root:
            root.execute("create database shop owner mig template template0 encoding 'UTF8'")
        migrate.upgrade(server.url("shop", "mig"), logins={"app": "app"})
        yield Rented.of(Database(server, "shop"))
    finally:
        stop()


@pytest.fixture
def restart(own: Rented) -> Callable[[str], None]:
    with own.server.connect() as root:
        found = root.execute("show data_directory").fetchone()
    data = Path(found["data_directory"]) if found else Path("/nowhere")

    def restart(mode: str) -> None:
        with own.server.connect() as root:
            root.execute("checkpoint")  # what a crash takes from a server without fsync is another matter
        program = programs()[own.server.major] / "pg_ctl"
        command = ["restart", "-D", str(data), "-m", mode, "-w", "-l", str(data / "restarted.log")]
        done = run_as(as_owner_of(data), [program, *command])
        assert done.returncode == 0, done.stderr

    return restart


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_calls_of_every_kind_go_on_after_a_restart(own: Rented, restart: Callable[[str], None], mode: str) -> None:
    own = Rented.of(own)
    durable = Durable.from_url(own.url("app"), min_size=POOL, max_size=POOL)
    with durable:
        me = durable.act_as(own.tenant("T1"), "U1")
        session = me.open_session("support", "s-1")
        wait_until(lambda: connected(own) == POOL)
        restart(mode)
        me.append_event(session, "agent", 1)
        for number in range(2, 2 * POOL):
            me.append_event(session, "agent", number)
            me.read_events(session)
            me.start_run(session, f"inv-{number}")
    assert len(stored(own, "events")) == 2 * POOL - 1
