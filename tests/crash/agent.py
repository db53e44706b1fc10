"""A worker, as a process: it takes runs that nobody executes, and works each as an agent of twelve steps.

`python -m tests.crash.agent '{...}'` (see Settings) works until it gets SIGTERM; it finishes what it is at and exits 0.
"""

import json
import os
import random
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from http.client import HTTPException
from pathlib import Path
from threading import Event
from typing import Any

from durable_pg import Durable, Identity, Run
from durable_pg.errors import ConnectionFault, EffectUnverified, LeaseLost, RunAwaiting, RunBusy, RunSettled
from durable_pg.types import ResumableRun
from tests.crash.shop import Shop
from tests.crash.turn import Turn
from tests.crash.watch import WAITS


@dataclass(frozen=True)
class Settings:
    """What a worker is told when it is started."""

    name: str
    app_url: str
    maintainer_url: str
    port: int
    mode: str
    seed: int
    journal: str
    lease_seconds: float = 1.5


class Journal:
    """What workers note for each other, in one write a line, so that a kill leaves whole lines."""

    def __init__(self, path: str, worker: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._path, self._read = Path(path), 0
        self._worker = worker

    def note(self, what: str, **more: Any) -> None:
        line = {"what": what, "worker": self._worker, "pid": os.getpid(), **more}
        os.write(self._file, (json.dumps(line) + "\n").encode())

    def news(self) -> Iterator[dict[str, Any]]:
        """Return what all have noted since this was asked last."""
        with self._path.open("rb") as journal:
            journal.seek(self._read)
            for line in journal:
                if not line.endswith(b"\n"):  # it is being written
                    break
                self._read += len(line)
                yield json.loads(line)


@dataclass
class Worker:
    settings: Settings
    database: Durable
    dispatcher: Durable
    journal: Journal
    random: random.Random
    # Runs that wait for a person, as the attempt has left them that found that out.
    waiting: set[tuple[str, int]] = field(default_factory=set)

    def work(self) -> bool:
        """Take one of the runs that wait longest, if there is any, and execute it."""
        found = self.dispatcher.maintainer().list_resumable(max_runs=1000)
        self.waiting.update((line["run"], line["attempt"]) for line in self.journal.news() if line["what"] == WAITS)
        claimable = [run for run in found if not run.unverified or (str(run.run_uid), run.attempt) not in self.waiting]
        if not claimable:
            return False
        self.execute(self.random.choice(claimable[:8]))
        return True

    def execute(self, chosen: ResumableRun) -> None:
        """Execute a run if it can be had, and note what came of it."""
        me = self.database.act_as(chosen.tenant_id, chosen.user_id)
        lease = timedelta(seconds=self.settings.lease_seconds)
        claimed: dict[str, Any] = {}
        try:
            with me.run(chosen.session_uid, chosen.invocation_id, worker=self.settings.name, lease=lease) as run:
                claimed = {"run": str(run.run_uid), "attempt": run.attempt}
                self.journal.note("claimed", **claimed)
                self._turn(me, run).work()
            self.journal.note("finished", **claimed)
        except EffectUnverified:
            self.journal.note(WAITS, **claimed)
        except LeaseLost:
            self.journal.note("lease lost")
        except (RunBusy, RunSettled, RunAwaiting, ConnectionFault, HTTPException, OSError) as fault:
            self.journal.note(type(fault).__name__)

    def _turn(self, me: Identity, run: Run) -> Turn:
        return Turn(
            me=me,
            run=run,
            order=run.invocation_id,
            shop=Shop(self.settings.port),
            dedupes=self.settings.mode == "dedupes",
            seed=self.settings.seed,
            note=self.journal.note,
        )


def main(settings: Settings) -> None:
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    journal = Journal(settings.journal, settings.name)
    while not stop.is_set():
        try:
            with (
                Durable.from_url(settings.app_url, max_size=3) as database,
                Durable.from_url(settings.maintainer_url, max_size=1) as dispatcher,
            ):
                worker = Worker(settings, database, dispatcher, journal, random.Random(settings.name))
                while not stop.is_set():
                    try:
                        idle = not worker.work()
                    except ConnectionFault as fault:  # of the dispatcher: a server that restarts
                        journal.note(type(fault).__name__)
                        idle = True
                    if idle:
                        stop.wait(0.05)
        except ConnectionFault:  # nobody was there when it began
            stop.wait(0.05)


if __name__ == "__main__":
    main(Settings(**json.loads(sys.argv[1])))
