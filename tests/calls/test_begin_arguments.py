"""begin_effect refuses what it can't mean by an error of its own that names the argument."""

from typing import Any
from uuid import UUID

import pytest

from tests.support.calls import call, open_session, start
from tests.support.harness import refused
from tests.support.ledger import begin
from tests.support.rented import Rented, nothing_written, stored


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"step": -1}, "step"),
        ({"step": None}, "step"),
        ({"ordinal": -1}, "ordinal"),
        ({"ordinal": None}, "ordinal"),
        ({"scope": "tenant"}, "scope"),
        ({"scope": "user"}, "scope"),
        ({"scope": "run", "intent": "i"}, "scope"),
        ({"scope": "world", "intent": "i"}, "scope"),
        ({"lease": "99 milliseconds"}, "lease"),
        ({"lease": "-1 second"}, "lease"),
        ({"lease": "25 hours"}, "lease"),
        ({"provider_dedupes_for": "0"}, "provider_dedupes_for"),
        ({"provider_dedupes_for": "-1 hour"}, "provider_dedupes_for"),
    ],
)
def test_an_argument_without_a_meaning_is_refused(db: Rented, run: UUID, change: dict[str, Any], column: str) -> None:
    with nothing_written(db), refused("22W03", match=column) as refusal, db.as_app() as app:
        begin(app, run, **change)
    assert refusal.diag.column_name == column


@pytest.mark.parametrize("name", ["", " ", " x", "x\n", "x" * 513])
@pytest.mark.parametrize("field", ["tool", "intent"])
def test_a_name_that_is_none_is_refused(db: Rented, run: UUID, field: str, name: str) -> None:
    with nothing_written(db), refused("22W01", match=field), db.as_app() as app:
        call(app, "begin_effect", **{"run_uid": run, "attempt": 1, "tool": "refund", field: name})


def test_a_tool_is_named(db: Rented, run: UUID) -> None:
    with nothing_written(db), refused("22W01", match="tool is missing"), db.as_app() as app:
        begin(app, run, tool=None)


@pytest.mark.parametrize("lease", ["100 milliseconds", "1 day"])
def test_the_limits_of_a_lease_are_taken(db: Rented, run: UUID, lease: str) -> None:
    with db.as_app() as app:
        assert begin(app, run, lease=lease)["outcome"] == "execute"


def test_a_time_of_deduplication_that_no_clock_reaches_is_refused(db: Rented, run: UUID) -> None:
    with nothing_written(db), refused("22W03", match="provider_dedupes_for"), db.as_app() as app:
        begin(app, run, provider_dedupes_for="300000 years")


@pytest.mark.parametrize("wide", ["tool", "intent"])
def test_names_of_the_greatest_length_fit_their_index(db: Rented, wide: str) -> None:
    # Drawn by a fixed rule, so that no index can compress them: 512 characters of 4 bytes each.
    name = "".join(chr(0x20000 + 7919 * place * place % 0x8000) for place in range(512))
    with db.as_app("T1", "u" * 20) as app:
        run = start(app, open_session(app))
        begun = begin(app, run, tool=name, intent=name if wide == "intent" else None)
        assert begun["outcome"] == "execute"
    assert stored(db, "effects")[0]["tool"] == name
