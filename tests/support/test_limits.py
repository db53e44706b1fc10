"""The time limit of every test: it fails that test alone, and names where it hung."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HANGING = """
import asyncio

from tests.support.limits import pytest_timeout_set_timer


async def answer_of_nobody():
    await asyncio.Event().wait()


def test_hangs():
    async def main():
        waiting = asyncio.create_task(answer_of_nobody(), name="the one that hangs")
        await waiting

    asyncio.run(main())


def test_is_run_all_the_same():
    pass
"""


@pytest.mark.once
def test_a_test_that_hangs_is_ended_and_says_where(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.support.limits import pytest_timeout_set_timer  # noqa: F401\n")
    (tmp_path / "test_hanging.py").write_text(HANGING)
    options = ["-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:durable_pg", "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--timeout", "1", *options, str(tmp_path / "test_hanging.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "1 failed, 1 passed" in done.stdout
    assert "Timeout (>1.0s)" in done.stdout
    assert "the one that hangs" in done.stdout
    assert "in answer_of_nobody" in done.stdout


def test_every_test_has_a_limit(request: pytest.FixtureRequest) -> None:
    assert float(request.config.getini("timeout")) > 0
