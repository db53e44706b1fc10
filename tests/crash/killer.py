"""Whoever kills: at seeded moments of the workers' progress, with seeded weapons, and counts."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.crash.stage import Front, Workers, wait_for
from tests.support.harness import value

# Runs that somebody executes, or may claim without waiting for a person.
OPEN = """
select count(*) from durable.runs as r where r.status in ('running', 'interrupted') and (
    r.lease_expires_at > clock_timestamp() or not exists (
        select from durable.effects as e where e.tenant_id = r.tenant_id and e.run_uid = r.run_uid
            and (e.tool = 'mail' or e.tool = 'booking' and not %s)
            and (e.status = 'unverified' or e.status = 'begun' and e.lease_expires_at <= clock_timestamp())
    )
)
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
        """Count the runs that go on without a person."""
        with self.workers.database.server.connect(self.workers.database.name) as root:
            return int(value(root, OPEN, self.workers.mode == "dedupes"))

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
