"""replay_verdict allows a replay only where nothing would happen twice."""

from typing import Any
from uuid import UUID

import pytest

from tests.support.calls import open_session, record_tools, say, start, verdict
from tests.support.rented import Rented


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


@pytest.fixture
def run(db: Rented, session: UUID) -> UUID:
    with db.as_app() as app:
        say(app, session)
        return start(app, session)


@pytest.mark.parametrize(
    ("tools", "settled", "expected"),
    [
        ([], None, (False, "not_settled", [])),
        (["b", "a"], None, (False, "not_settled", ["a", "b"])),
        ([], {}, (False, "succeeded", [])),
        (["a"], {}, (False, "succeeded", ["a"])),
        (None, {"status": "failed"}, (False, "unknown", [])),
        ([], {"status": "failed"}, (True, "nothing_executed", [])),
        ([], {"status": "cancelled"}, (True, "nothing_executed", [])),
        (None, {"status": "failed", "tools_executed": []}, (False, "unknown", [])),
        (["b", "a"], {"status": "failed"}, (False, "tools_executed", ["a", "b"])),
        (["a"], {"status": "cancelled"}, (False, "tools_executed", ["a"])),
        ([], {"status": "failed", "tools_executed": ["x"]}, (False, "tools_executed", ["x"])),
    ],
)
def test_a_replay_is_allowed_only_where_it_is_known_that_nothing_ran(
    db: Rented,
    *,
    session: UUID,
    run: UUID,
    tools: list[str] | None,
    settled: dict[str, Any] | None,
    expected: tuple[bool, str, list[str]],
) -> None:
    record_tools(db, session, run, tools, settled)
    assert verdict(db, "replay", run) == expected
