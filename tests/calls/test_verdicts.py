"""Verdicts are read from the record: a replay or a retry is allowed only where nothing would happen twice."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.calls import append, call, call_all, open_session, said, say, settle, start, use_tool
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


@pytest.fixture
def run(db: Rented, session: UUID) -> UUID:
    with db.as_app() as app:
        say(app, session)
        return start(app, session)


def verdict(db: Rented, kind: str, run: UUID) -> tuple[bool, str, list[str]]:
    with nothing_written(db), db.as_app() as app:
        found = call(app, f"{kind}_verdict", run_uid=run)
    return found["allowed"], found["reason"], found["tools"]


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
    record(db, session, run, tools, settled)
    assert verdict(db, "replay", run) == expected


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
    record(db, session, run, tools, settled)
    assert verdict(db, "retry", run) == expected


def record(db: Rented, session: UUID, run: UUID, tools: list[str] | None, settled: dict[str, Any] | None) -> None:
    """Record an answer and these calls, or nothing; then settle, or don't."""
    with db.as_app() as app:
        if tools is not None:
            append(app, session, "agent", said("thinking"), invocation_id="inv-1", attempt=1)
            for tool in tools:
                use_tool(app, session, tool, attempt=1)
        if settled is not None:
            settle(app, run, **settled)


def test_a_tool_that_the_caller_named_blocks_a_retry_too(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        append(app, session, "agent", invocation_id="inv-1", attempt=1, extra_tool_calls=["hidden"])
    assert verdict(db, "retry", run) == (False, "tools_recorded", ["hidden"])


@pytest.mark.parametrize("kind", ["replay", "retry"])
def test_a_run_that_never_was_has_no_verdict(db: Rented, kind: str) -> None:
    with refused("42W05"), db.as_app() as app:
        call(app, f"{kind}_verdict", run_uid=uuid4())
    with refused("22W03", match="run_uid is missing"), db.as_app() as app:
        call(app, f"{kind}_verdict")


@pytest.mark.parametrize("kind", ["replay", "retry"])
def test_an_operator_and_an_auditor_get_the_same_verdict(db: Rented, session: UUID, run: UUID, kind: str) -> None:
    with db.as_app() as app:
        use_tool(app, session, "refund", attempt=1)
        own = call(app, f"{kind}_verdict", run_uid=run)
    for block in (db.as_operator(), db.as_auditor()):
        with block as reader:
            assert call(reader, f"{kind}_verdict", run_uid=run) == own


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
@pytest.mark.parametrize("function", ["settle_run", "retry_verdict", "replay_verdict"])
def test_a_snapshot_that_may_be_older_than_the_log_is_refused(db: Rented, run: UUID, function: str, level: str) -> None:
    with (
        nothing_written(db),
        refused("55W05", match=f"{function} can't run under {level.upper()}"),
        db.connect("app") as app,
    ):
        app.execute(f"set transaction isolation level {level}".encode())
        db.act_as(app)
        call_all(app, function, run_uid=run)


@pytest.mark.parametrize("level", ["read committed", "read uncommitted"])
@pytest.mark.parametrize("function", ["settle_run", "retry_verdict", "replay_verdict"])
def test_a_snapshot_of_the_statements_own_is_fine(db: Rented, run: UUID, function: str, level: str) -> None:
    with db.connect("app") as app:
        app.execute(f"set transaction isolation level {level}".encode())
        db.act_as(app)
        more = {"attempt": 1, "status": "succeeded"} if function == "settle_run" else {}
        assert len(call_all(app, function, run_uid=run, **more)) == 1
