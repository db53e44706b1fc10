"""The processes of one performance: a provider, workers that come and go, and whoever sends orders in."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from durable_pg import Durable
from durable_pg.errors import ConnectionFault
from tests.crash import agent, provider
from tests.crash.shop import Shop
from tests.crash.watch import Watch
from tests.support.harness import Database

ROOT = Path(__file__).parents[2]
TENANTS = ("T1", "T2")
USERS = ("U1", "U2", "U3")


def wait_for(condition: Callable[[], object], seconds: float, otherwise: Callable[[], str]) -> None:
    """Return as soon as the condition holds; after so many seconds raise what it failed of."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(otherwise())
        time.sleep(0.01)


def start(module: str, settings: Any, **streams: Any) -> subprocess.Popen[str]:
    """Start a module of this room as a process of its own."""
    command = [sys.executable, "-m", module, json.dumps(asdict(settings))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **streams)


@contextmanager
def running(settings: provider.Settings) -> Iterator[Shop]:
    """Run a provider until the block ends."""
    process = start("tests.crash.provider", settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Shop(int(process.stdout.readline()))
    finally:
        process.stdin.close()
        process.wait(timeout=10)
        process.stdout.close()


@dataclass
class Workers:
    """So many workers at any time, each killed one replaced by another process."""

    database: Database
    shop: Shop
    mode: str
    seed: int
    directory: Path
    number: int
    alive: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.watch = Watch(self.directory / "journal")

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.alive.values():
            process.kill()
            process.wait()

    def fill(self) -> None:
        """Start as many as are missing."""
        while len(self.alive) < self.number:
            # Old names come back, as they do where workers are called after their place.
            name = next(name for name in map("worker-{}".format, range(self.number)) if name not in self.alive)
            with self.complaint(name).open("a") as complaints:
                self.alive[name] = start("tests.crash.agent", self.settings(name), stderr=complaints)

    def at_work(self) -> list[str]:
        """Name those that have a run in hand."""
        return sorted(name for name, process in self.alive.items() if self.watch.run_of(process.pid))

    def settings(self, name: str) -> agent.Settings:
        """Return what a worker of this name is told."""
        return agent.Settings(
            name=name,
            app_url=f"{self.database.url('app')}{self._named(name)}",
            maintainer_url=f"{self.database.url('maintainer')}{self._named(name)}",
            port=self.shop.port,
            mode=self.mode,
            seed=self.seed,
            journal=str(self.directory / "journal"),
        )

    def kill(self, name: str) -> None:
        """Kill one as the kernel does when memory runs out, and start another."""
        process = self.alive.pop(name)
        process.kill()
        process.wait()
        assert process.returncode == -signal.SIGKILL, f"{name} had died by itself: {self.complaints()}"
        self.fill()

    def stall(self, name: str, seconds: float) -> bool:
        """Let one sleep until another worker has taken its run, and wake up not knowing. Tell whether one has."""
        process = self.alive[name]
        process.send_signal(signal.SIGSTOP)
        run = self.watch.run_of(process.pid)
        deadline = time.monotonic() + seconds
        taken = False
        while run and not taken and time.monotonic() < deadline:
            time.sleep(0.01)
            taken = self.watch.holder_of(run) != process.pid
        process.send_signal(signal.SIGCONT)
        return taken

    def end_backends(self, name: str) -> int:
        """End what one has open at the database, whatever it is doing there; return how many there were."""
        with self.database.server.connect() as root:
            ended = root.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and application_name = %s",
                (self.database.name, name),
            )
            return ended.rowcount

    def stop(self) -> None:
        """Let them finish what they are at and leave."""
        for process in self.alive.values():
            process.terminate()
        for name, process in self.alive.items():
            # One that has just been started is still importing, and simply ends.
            ended = process.wait(timeout=30)
            assert ended in {0, -signal.SIGTERM}, f"{name} has failed with {ended}: {self.complaints()}"
        self.alive.clear()

    def complaints(self) -> str:
        """Return what workers have written to their standard error, such as why one failed by itself."""
        return "\n".join(path.read_text() for path in sorted(self.directory.glob("*.stderr")))

    def complaint(self, name: str) -> Path:
        """Return the file of one's standard error."""
        return self.directory / f"{name}.stderr"

    def _named(self, name: str) -> str:
        return f"{'&' if '?' in self.database.url('app') else '?'}application_name={name}"


@dataclass
class Front:
    """Takes users' orders, starts their runs and leaves them to the workers."""

    durable: Durable
    prefix: str
    submitted: list[str] = field(default_factory=list)

    def submit(self) -> UUID:
        """Record one more order and hand it over: an open run that nobody executes is for whoever comes."""
        number = len(self.submitted)
        order = f"{self.prefix}-{number}"
        me = self.durable.act_as(TENANTS[number % 2], USERS[number % 3])
        session = me.open_session("support", f"session-{order}")
        me.append_event(session, "user", {"parts": [{"text": f"refund {order}"}]}, invocation_id=order)
        run = me.start_run(session, order, worker="front", lease=timedelta(seconds=5))
        if run.outcome == "started":
            me.interrupt_run(run, error={"why": "handed over"})
        self.submitted.append(order)
        return run.run_uid

    def submit_through_faults(self) -> None:
        """Submit while the server may be away; each call can be repeated."""
        while True:
            try:
                self.submit()
            except ConnectionFault:
                time.sleep(0.05)
            else:
                return
