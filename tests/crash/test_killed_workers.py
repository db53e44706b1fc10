"""Workers are killed at random moments and others go on: nothing happens twice, and nothing is lost.

A short performance in every run of the suite, a long one by `make crash`. DURABLE_PG_CRASH_KILLS says how many kills,
DURABLE_PG_CRASH_SEED which ones.
"""

import os
from pathlib import Path

import pytest

from tests.crash.performance import perform
from tests.support.harness import Database

KILLS = int(os.environ.get("DURABLE_PG_CRASH_KILLS", "8"))
SEED = int(os.environ.get("DURABLE_PG_CRASH_SEED", "4"))


# It waits for runs to get on, for as long as each of its own waits says.
@pytest.mark.timeout(300 + 10 * KILLS)
@pytest.mark.parametrize("mode", ["dedupes", "forgets"])
def test_killed_stalled_and_cut_off_workers_do_nothing_twice_and_lose_nothing(
    db: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    report = perform(db, tmp_path, mode=mode, seed=SEED, kills=KILLS, stalls=1 + KILLS // 10, cuts=KILLS // 3)
    with capsys.disabled():
        print(f"\n{report.told()}")  # noqa: T201  # what `make crash` is read for
    # A performance in which nobody took over, or nothing had to be looked up, would prove nothing.
    for count in ("resumes", "executions", "recorded answers", "diverged"):
        assert report.counts[count] > 0, report
