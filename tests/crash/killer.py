"""Whoever kills: at seeded moments of the workers' progress, with seeded weapons, and counts."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from psycopg.rows import DictRow

from tests.crash.stage import Front, Workers, wait_for

# As list_resumable() tells it to the workers: which runs are open, and whether somebody has to look into an effect.
OPEN = """
select r.run_uid, r.attempt, r.lease_expires_at > clock_timestamp() as held, exists (
    select from durable.effect_calls as c
    join durable.effects as e on e.tenant_id = c.tenant_id and e.effect_uid = c.effect_uid
    where c.tenant_id = r.tenant_id and c.run_uid = r.run_uid
        and (e.status = 'unverified' or e.status = 'begun' and e.lease_expires_at <= clock_timestamp())
) as unverified
from durable.runs as r where r.status in ('running', 'interrupted')
"""
LEASE_SECONDS = 1.5


@dataclass
class Killer:
    """Strikes so many times in all with each weapon, in a random order, at random moments, at random workers."""

    workers: Workers
    front: Front
    seed: int
    kills: int = 0
    stalls: int = 0  # a worker sleeps until its run is taken by another
    cuts: int = 0  # a worker's connections are ended by the database
    others: int = 0  # what `other` does
    other: Callable[[], None] = lambda: None
    cut: int = 0  # connections, in all
    taken: int = 0  # stalled workers whose run was taken before they woke up

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def perform(self) -> None:
        """Keep the workers busy and strike, until all is done; then wait until they have no more to do."""
        self.workers.fill()
        weapons: list[Callable[[str], None]] = [self._kill] * self.kills
        weapons += [self._stall] * self.stalls + [self._cut] * self.cuts + [self._other] * self.others
        self.random.shuffle(weapons)
        for weapon in weapons:
            self._await_moment()
            weapon(self._victim())
        wait_for(lambda: self.open_runs() == 0, 120, lambda: f"{self.open_runs()} runs are stuck; {self._complaints()}")

    def open_runs(self) -> int:
        """Count the runs that go on without a person: those that a worker executes, or may still take."""
        with self.workers.database.server.connect(self.workers.database.name) as root:
            runs = root.execute(OPEN).fetchall()
        return sum(run["held"] or not (run["unverified"] and self._is_given_up(run)) for run in runs)

    def _is_given_up(self, run: DictRow) -> bool:
        return self.workers.watch.waits_for_a_person(str(run["run_uid"]), run["attempt"])

    def _keep_busy(self) -> list[str]:
        """Submit orders if there are too few, and name the workers that are at one."""
        # More than there are workers: that of a killed one is out of reach until its lease is over.
        for _ in range(self.workers.number + 2 - self.open_runs()):
            self.front.submit_through_faults()
        return self.workers.at_work()

    def _await_moment(self) -> None:
        """Let the workers get on by some steps, then by a random moment more."""
        goal = self.workers.shop.ticks() + self.random.randint(2, 15)
        # They may all have to wait for the leases of killed ones.
        deadline = time.monotonic() + 2 * LEASE_SECONDS
        while self.workers.shop.ticks() < goal and time.monotonic() < deadline:
            self._keep_busy()
            time.sleep(0.01)
        time.sleep(self.random.random() * 0.03)

    def _victim(self) -> str:
        """Choose one that is at work: to kill one that is idle, or has just been started, proves nothing."""
        wait_for(self._keep_busy, 30, lambda: f"nobody works; {self._complaints()}")
        return self.random.choice(self.workers.at_work() or sorted(self.workers.alive))

    def _kill(self, victim: str) -> None:
        self.workers.kill(victim)

    def _stall(self, victim: str) -> None:
        self.taken += self.workers.stall(victim, 2 * LEASE_SECONDS)

    def _cut(self, victim: str) -> None:
        self.cut += self.workers.end_backends(victim)

    def _other(self, _: str) -> None:
        self.other()

    def _complaints(self) -> str:
        return self.workers.complaints() or "no worker complains"
