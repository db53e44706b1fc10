"""One performance: orders come in, workers work and are killed, people are asked, and the books are compared."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from durable_pg import Durable
from tests.crash import provider, verdict
from tests.crash.books import Books, ask_a_person, sweep
from tests.crash.killer import Killer
from tests.crash.stage import Front, Workers, running, wait_for
from tests.support.harness import Database

WORKERS = 3
FAULTS = {"drops_before": 0.02, "drops_after": 0.04, "late": 0.05, "refuses_first": 0.08, "refuses_always": 0.03}


@dataclass(frozen=True)
class Report:
    """What a performance came to."""

    mode: str
    counts: dict[str, int]
    seconds: float

    def told(self) -> str:
        """Return it in one line."""
        counts = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        return f"{self.mode}: {counts}; {self.seconds:.1f} s"


Prologue = Callable[[Workers, Front], None]


def perform(
    database: Database,
    directory: Path,
    *,
    mode: str,
    seed: int,
    faults: Mapping[str, float] = FAULTS,
    prologue: Prologue | None = None,
    **killing: Any,
) -> Report:
    """Let the workers be killed, compare the books, ask people, let the workers finish, and compare once more."""
    began = time.monotonic()
    settings = provider.Settings(mode=mode, log=str(directory / "executions"), seed=seed, **faults)
    with (
        running(settings) as shop,
        Durable.from_url(database.url("app"), max_size=2) as front_database,
        Workers(database, shop, mode, seed, directory, WORKERS) as workers,
    ):
        front = Front(front_database, f"order-{seed}-{mode}")
        if prologue:
            prologue(workers, front)
        killer = Killer(workers, front, seed, **killing)
        killer.perform()
        workers.stop()
        sweep(database)
        before = Books.read(database, directory, front.submitted)
        judge(before, dedupes=mode == "dedupes")
        verdict.every_run_is_settled_or_waits_for_a_person(before)
        asked = ask_a_person(database, directory)
        assert asked == sum(map(len, before.unverified().values()))
        shop.calm_down()
        workers.fill()
        wait_for(lambda: _settled(database) == len(front.submitted), 120, workers.complaints)
        workers.stop()
    after = Books.read(database, directory, front.submitted)
    judge(after, dedupes=mode == "dedupes")
    verdict.everything_was_done_or_declined(after)
    return Report(mode, _counts(killer, after, asked), time.monotonic() - began)


def judge(books: Books, *, dedupes: bool) -> None:
    """Raise AssertionError for anything that may never be, at whatever moment one looks."""
    verdict.nothing_happened_twice(books)
    verdict.the_ledger_knows_every_execution(books)
    verdict.no_stale_attempt_wrote_anything(books)
    verdict.one_process_had_each_attempt(books)
    verdict.a_key_was_handed_out_once(books, dedupes=dedupes)
    verdict.every_log_is_intact(books)


def _settled(database: Database) -> int:
    with database.superuser() as root:
        (row,) = root.execute("select count(*) from durable.runs where status = 'succeeded'").fetchall()
    return int(row["count"])


def _counts(killer: Killer, books: Books, asked: int) -> dict[str, int]:
    noted = books.noted()
    return {
        "runs": len(books.orders),
        "kills": killer.kills,
        "stalls": killer.stalls,
        "taken from stalled": killer.taken,
        "connections cut": killer.cut,
        "restarts": killer.others,
        # The first attempt is the front's, the second one begins.
        "resumes": sum(line["what"] == "claimed" and line["attempt"] > 2 for line in books.journal),
        "executions": len(books.executions),
        "recorded answers": noted["recorded"],
        "verified": noted["verified"],
        "diverged": noted["diverged"],
        "declined": noted["declined"],
        "leases lost": noted["lease lost"],
        "outcomes that met": noted["outcomes met"],
        "unverified": asked,
    }
