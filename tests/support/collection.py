"""What pytest collects must be the same in every process: xdist's workers compare their lists, and give up if not."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COLLECTED = pytest.StashKey[list[str]]()
ITEMS = pytest.StashKey[list[pytest.Item]]()
# Of bytes and objects: what one process has made differs from what another makes.
_MADE_HERE = re.compile(r"(?:\\x[0-9a-f]{2}){3}|0x[0-9a-f]{6,}|object at")


def keep(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Remember the list as it was collected, with what will be left out of this run."""
    config.stash[ITEMS] = list(items)
    config.stash[COLLECTED] = [item.nodeid for item in items]


def odd_ids(ids: Sequence[str]) -> list[str]:
    """Return the ids that hold bytes or addresses, or can't be printed."""
    return [found for found in ids if _MADE_HERE.search(found) or not found.isprintable()]


def collected_elsewhere(*paths: str) -> list[str]:
    """Return what another process collects: with other hashes, in another directory for temporary files."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", *paths],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"pytest could not collect: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return [line for line in done.stdout.splitlines() if "::" in line]
