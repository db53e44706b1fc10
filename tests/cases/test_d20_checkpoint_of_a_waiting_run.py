"""D20, activepieces/activepieces#15302: the saved state of paused runs was collected, so that they could not resume."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tests.support.calls import ask_for, begin, call, finish, interrupt, open_session, save, settle, start
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored

NEWEST = {"waits": "for a decision", "step": 2}
STATES = ("awaiting", "running", "unverified")


@pytest.fixture
def runs(db: Rented) -> dict[str, UUID]:
    """The runs r1 (waits for a decision), r2 (finished), r3 (has a live lease) and r4 (has an unverified effect)."""
    found = {}
    for state in ("awaiting", "finished", "running", "unverified"):
        with db.as_app() as app:
            run = start(app, open_session(app, state))
            save(app, run, 1)
            save(app, run, 2, state=NEWEST)
            if state == "finished":
                settle(app, run)
            elif state == "unverified":
                finish(app, begin(app, run, step=3)["effect_uid"], "unverified")
                interrupt(app, run)
        found[state] = run
    with db.as_engine() as engine:
        engine.execute(
            "update durable.runs set status = 'awaiting', lease_holder = null where run_uid = %s", (found["awaiting"],)
        )
    return found


def newest(db: Rented, run: UUID) -> Any:
    with db.as_app() as app:
        return call(app, "load_checkpoint", run_uid=run)["state"]


@pytest.mark.parametrize("state", STATES)
def test_a_run_that_is_open_has_its_newest_checkpoint(db: Rented, runs: dict[str, UUID], state: str) -> None:
    assert newest(db, runs[state]) == NEWEST


@pytest.mark.parametrize("statement", ["delete from durable.checkpoints", "truncate durable.checkpoints"])
@pytest.mark.parametrize("who", ["app", "operator", "maintainer", "auditor", "engine", "steward", "janitor"])
def test_no_role_removes_a_checkpoint(db: Rented, runs: dict[str, UUID], who: str, statement: str) -> None:
    connected: Callable[..., Any] = getattr(db, f"as_{who}")
    with nothing_written(db), refused("42501"), connected() as connection:
        connection.execute(statement.encode())


@pytest.mark.parametrize("statement", ["delete from durable.checkpoints", "truncate durable.checkpoints"])
def test_not_even_past_all_rights_is_one_removed(db: Rented, runs: dict[str, UUID], statement: str) -> None:
    with nothing_written(db), refused("23W01"), db.superuser() as root:
        root.execute(statement.encode())


def test_a_run_does_not_go_and_leave_its_checkpoints(db: Rented, runs: dict[str, UUID]) -> None:
    with nothing_written(db), pytest.raises(Exception, match="runs"), db.superuser() as root:
        root.execute("delete from durable.runs where run_uid = %s", (runs["awaiting"],))


def test_the_maintainers_sweep_leaves_them_too(db: Rented, runs: dict[str, UUID]) -> None:
    before = stored(db, "checkpoints")
    for _ in range(2):
        with db.as_maintainer() as maintainer:
            call(maintainer, "reap_runs")
    assert stored(db, "checkpoints") == before


def test_a_closed_session_keeps_them(db: Rented, runs: dict[str, UUID]) -> None:
    with db.as_app() as app:
        call(app, "close_session", session_uid=open_session(app, "unverified"), reason="cleaned up")
    assert newest(db, runs["unverified"]) == NEWEST


def test_the_run_with_the_unverified_effect_goes_on_from_it(db: Rented, runs: dict[str, UUID]) -> None:
    with db.as_app() as app:
        taken = ask_for(app, open_session(app, "unverified"))
        assert (taken["run_uid"], taken["outcome"]) == (runs["unverified"], "resumed")
        found = call(app, "load_checkpoint", run_uid=taken["run_uid"])
        assert (found["step"], found["state"]) == (2, NEWEST)
        assert save(app, taken["run_uid"], 3, taken["attempt"])["outcome"] == "saved"
