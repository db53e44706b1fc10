"""The server itself is restarted under the workers, in an orderly way and by a crash."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from durable_pg import migrate
from durable_pg._embedded.errors import NoEmbeddedServer
from durable_pg._embedded.programs import as_owner_of, programs, run_as
from durable_pg._embedded.temporary import start_temporary
from tests.crash.performance import perform
from tests.support.harness import Database, value
from tests.support.servers import Server

RESTARTS = max(3, int(os.environ.get("DURABLE_PG_CRASH_KILLS", "0")) // 10)
SEED = int(os.environ.get("DURABLE_PG_CRASH_SEED", "4"))
pytestmark = [pytest.mark.once, pytest.mark.timeout(300 + 30 * RESTARTS)]


@pytest.fixture
def own() -> Iterator[Database]:
    """A database on a server of this test's own, which loses nothing that it has promised when it crashes."""
    try:
        url, stop = start_temporary()
    except NoEmbeddedServer as error:
        pytest.skip(str(error))
    try:
        server = Server.at(url)
        server.provision()
        with server.connect() as root:
            root.execute("alter system set synchronous_commit = on")
            root.execute("select pg_reload_conf()")
            root.execute("create database shop owner mig template template0 encoding 'UTF8'")
        logins = {login: login for login in ("app", "operator", "maintainer", "auditor")}
        migrate.upgrade(server.url("shop", "mig"), logins=logins)
        with server.connect("shop") as root:
            assert value(root, "show synchronous_commit") == "on"
        yield Database(server, "shop")
    finally:
        stop()


def restarter(database: Database, mode: str) -> Callable[[], None]:
    with database.server.connect() as root:
        data = Path(value(root, "show data_directory"))
    program = programs()[database.server.major] / "pg_ctl"

    def restart() -> None:
        command = ["restart", "-D", str(data), "-m", mode, "-w", "-l", str(data / "restarted.log")]
        done = run_as(as_owner_of(data), [program, *command])
        assert done.returncode == 0, done.stderr

    return restart


# A crash needs a server to recover; an orderly restart is the milder case, and only in the long performance.
@pytest.mark.parametrize("mode", ["immediate", "fast"][: 1 if RESTARTS == 3 else 2])
def test_a_restarted_server_lets_nothing_happen_twice_and_loses_nothing(
    own: Database, tmp_path: Path, mode: str
) -> None:
    report = perform(own, tmp_path, mode="forgets", seed=SEED, kills=2, others=RESTARTS, other=restarter(own, mode))
    assert report.counts["resumes"] > 0, report
