"""Record a file of trajectories as the app, over SQL alone: python -m tests.trajectories.record URL FILE."""

import json
import random
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import psycopg

from durable_pg.demo.recording import AgentRun, record, trajectories

WORKERS = 8
SUBMISSIONS = 3
TENANT = "airline-one"


def submit(url: str, runs: list[AgentRun]) -> Counter[str]:
    """Work through a share of the submissions, every call in a transaction of its own."""
    outcomes: Counter[str] = Counter()
    with psycopg.connect(url, autocommit=True) as connection:
        for run in runs:
            outcomes += record(connection, run, tenant=TENANT)
    return outcomes


def submit_all(url: str, file: Path, *, seed: int = 7) -> Counter[str]:
    """Let the workers submit every run several times, in shuffled order; count the outcomes of all calls."""
    submissions = trajectories(file) * SUBMISSIONS
    random.Random(seed).shuffle(submissions)
    outcomes: Counter[str] = Counter()
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as workers:
        shares = [submissions[worker::WORKERS] for worker in range(WORKERS)]
        for share in workers.map(submit, [url] * WORKERS, shares):
            outcomes += share
    return outcomes


if __name__ == "__main__":
    sys.stdout.write(json.dumps(submit_all(sys.argv[1], Path(sys.argv[2])), indent=2) + "\n")
