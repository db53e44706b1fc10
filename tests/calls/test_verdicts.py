"""Both verdicts are read from the record, alike for whoever may ask."""

from uuid import UUID, uuid4

import pytest

from tests.support.calls import call, call_all, open_session, say, start, use_tool
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
