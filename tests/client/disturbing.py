"""What happens to a call while it is under way: somebody holds what it needs, and then something else comes."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import monotonic, sleep
from uuid import UUID

from durable_pg.errors import DurableError
from tests.support.harness import Connection, Database, value

_OF_LOGIN = "from pg_stat_activity where datname = current_database() and usename = %s"
Disturbance = Callable[[Connection, int], object]


def told(error: DurableError) -> tuple[type[DurableError], bool, str]:
    """Return what a caller decides by."""
    return type(error), error.may_have_taken_effect, error.call


@contextmanager
def held(db: Database, session_uid: UUID) -> Iterator[Connection]:
    """Hold a session's row as another transaction would, until the block ends or somebody rolls it back."""
    with db.superuser() as holder:
        holder.execute("select from durable.sessions where session_uid = %s for update", (session_uid,))
        yield holder
        holder.rollback()


@contextmanager
def once_blocked(db: Database, holder: Connection, act: Disturbance) -> Iterator[None]:
    """Do something, once, as soon as another backend waits for `holder`: it is given a superuser and that backend."""
    with ThreadPoolExecutor(1) as executor:
        acting = executor.submit(_act_once_blocked, db, holder, act)
        yield
        acting.result(timeout=20)


def terminate(root: Connection, pid: int) -> None:
    root.execute("select pg_terminate_backend(%s)", (pid,))


def cancel(root: Connection, pid: int) -> None:
    root.execute("select pg_cancel_backend(%s)", (pid,))


def terminate_all(db: Database, login: str = "app") -> int:
    """End every connection of a login to this database and wait until all are gone; return how many there were."""
    with db.server.connect(db.name) as root:
        ended = root.execute(f"select pg_terminate_backend(pid) {_OF_LOGIN}".encode(), (login,)).fetchall()
    wait_until(lambda: connected(db, login) == 0)
    return len(ended)


def connected(db: Database, login: str = "app") -> int:
    """Count the connections of a login to this database."""
    with db.server.connect(db.name) as root:
        return int(value(root, f"select count(*) {_OF_LOGIN}", login))


def runs(db: Database, backend: int) -> bool:
    """Whether there is such a backend."""
    with db.server.connect(db.name) as root:
        return bool(value(root, "select exists (select from pg_stat_activity where pid = %s)", backend))


def _act_once_blocked(db: Database, holder: Connection, act: Disturbance) -> None:
    waiting = "select max(pid) from pg_stat_activity where %s = any(pg_blocking_pids(pid)) and wait_event_type = 'Lock'"
    with db.server.connect(db.name) as root:
        wait_until(lambda: value(root, waiting, holder.info.backend_pid) is not None)
        act(root, value(root, waiting, holder.info.backend_pid))


def wait_until(condition: Callable[[], bool]) -> None:
    """Ask again and again, for ten seconds."""
    deadline = monotonic() + 10
    while not condition():
        assert monotonic() < deadline, "waited for 10 s in vain"
        sleep(0.005)


async def wait_until_async(condition: Callable[[], bool]) -> None:
    """Do the same, and let the event loop go on."""
    deadline = monotonic() + 10
    while not condition():
        assert monotonic() < deadline, "waited for 10 s in vain"
        await asyncio.sleep(0.005)
