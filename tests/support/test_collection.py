"""Two processes collect the same tests under the same ids, whatever the hour and the hash seed."""

import textwrap
from pathlib import Path

import pytest

from tests.support.collection import COLLECTED, collected_elsewhere, odd_ids


@pytest.mark.once
def test_two_processes_collect_the_same(request: pytest.FixtureRequest) -> None:
    here = request.config.stash[COLLECTED]
    mine = set(here)
    there = [found for found in collected_elsewhere() if found in mine]
    # Those that were chosen for this run; their order counts as well.
    assert there == here


def test_ids_hold_nothing_that_another_process_would_make_otherwise(request: pytest.FixtureRequest) -> None:
    collected = request.config.stash[COLLECTED]
    assert odd_ids(collected) == []


@pytest.mark.parametrize(
    "bad",
    ["t.py::test[\\x1f\\x8b\\x08]", "t.py::test[<object object at 0x7f3a]", "t.py::test[0x7f3a11223344]", "a\tb"],
    ids=["bytes", "an object", "an address", "a tab"],
)
def test_such_ids_are_found(bad: str) -> None:
    assert odd_ids(["t.py::test[refund]", bad]) == [bad]


@pytest.mark.once
def test_a_list_that_depends_on_hashes_is_found(tmp_path: Path) -> None:
    file = tmp_path / "test_sets.py"
    file.write_text(
        textwrap.dedent(
            """
            import os
            import pytest

            @pytest.mark.parametrize("seed", [os.environ["PYTHONHASHSEED"]])
            def test_of_this_process(seed):
                pass
            """
        )
    )
    (found,) = collected_elsewhere("-p", "no:durable_pg", "--rootdir", str(tmp_path), str(file))
    assert found.endswith(("[1]", "[2]"))
