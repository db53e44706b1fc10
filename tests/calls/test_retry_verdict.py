"""retry_verdict allows a retry only while no tool is recorded."""

from typing import Any
from uuid import UUID

import pytest

from tests.support.calls import append, open_session, record_tools, say, start, verdict
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
        (None, None, (True, "no_tool_recorded", [])),
        ([], None, (True, "no_tool_recorded", [])),
        (["b", "a", "a"], None, (False, "tools_recorded", ["a", "b"])),
        ([], {"status": "failed"}, (False, "settled", [])),
        (["a"], {"status": "failed"}, (False, "settled", ["a"])),
    ],
)
def test_a_retry_is_allowed_only_while_no_tool_is_recorded(
    db: Rented,
    *,
    session: UUID,
    run: UUID,
    tools: list[str] | None,
    settled: dict[str, Any] | None,
    expected: tuple[bool, str, list[str]],
) -> None:
    record_tools(db, session, run, tools, settled)
    assert verdict(db, "retry", run) == expected


def test_a_tool_that_the_caller_named_blocks_a_retry_too(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        append(app, session, "agent", invocation_id="inv-1", attempt=1, extra_tool_calls=["hidden"])
    assert verdict(db, "retry", run) == (False, "tools_recorded", ["hidden"])
