"""A worker dies before and after each of its calls, one run a boundary, and others go on.

Every so many boundaries in a run of the suite; each of them by `make crash`.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.crash.performance import perform
from tests.crash.stage import Front, Workers, start
from tests.support.harness import Database

STRIDE = 1 if "DURABLE_PG_CRASH_KILLS" in os.environ else 13
# Faults that end an attempt would hide the boundaries behind them.
REFUSALS = {"refuses_first": 0.1, "refuses_always": 0.03}
MODES = ("dedupes", "forgets") if STRIDE == 1 else ("forgets",)


@pytest.mark.timeout(300 if STRIDE > 1 else 3600)
@pytest.mark.parametrize("mode", MODES)
def test_wherever_a_worker_dies_nothing_happens_twice_and_nothing_is_lost(
    db: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    died: list[int] = []

    def sweep(workers: Workers, front: Front) -> None:
        died.extend(die_at_each_boundary(workers, front))

    report = perform(db, tmp_path, mode=mode, seed=1, kills=0, prologue=sweep, faults=REFUSALS)
    with capsys.disabled():
        print(f"\n{report.told()}; boundaries {len(died)}, the last one {died[-1]}")  # noqa: T201
    # Five effects of two statements and one request each, and as many steps again, with their events.
    assert died[-1] > 80, report
    assert report.counts["resumes"] > 0, report


def die_at_each_boundary(workers: Workers, front: Front) -> list[int]:
    """Let a run die at every STRIDE-th boundary until one is over before; return where."""
    died: list[int] = []
    settings = workers.settings("sweeper")
    with (
        workers.complaint("sweeper").open("a") as complaints,
        start(
            "tests.crash.boundaries", settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints
        ) as sweeper,
    ):
        assert sweeper.stdin is not None
        assert sweeper.stdout is not None
        answer = "died"
        while answer == "died":
            number = 1 + len(died) * STRIDE
            front.submit()
            sweeper.stdin.write(f"{front.submitted[-1]} {number}\n")
            sweeper.stdin.flush()
            answer = sweeper.stdout.readline().strip()
            if answer == "died":
                died.append(number)
        sweeper.stdin.close()
    assert answer == "lived", workers.complaints()
    return died
