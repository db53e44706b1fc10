"""Leases on runs: one attempt holds a run for a time by the database's clock; whoever lost it writes nothing more."""

from datetime import timedelta
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.calls import append, call, open_session, said, say, settle, start
from tests.support.harness import refused, value
from tests.support.ledger import SHORT, ask_for, begin, finish, interrupt, take_over, wait_until_over
from tests.support.rented import Rented, nothing_written, stored

NOT_HELD = ["settled", "interrupted", "awaiting", "taken over", "not given", "guessed"]


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


@pytest.fixture
def run(db: Rented, session: UUID) -> UUID:
    with db.as_app() as app:
        return start(app, session, worker="w-0")


def renew(connection: Any, run: UUID, attempt: int | None = 1, **more: Any) -> Any:
    return call(connection, "renew_lease", run_uid=run, attempt=attempt, **more)


def expire(db: Rented, session: UUID, **more: Any) -> UUID:
    """Start a run and let its lease run out."""
    with db.as_app() as app:
        started = ask_for(app, session, **{"worker": "w-0", "lease": SHORT, **more})
    assert started["outcome"] == "started"
    wait_until_over(db, started["lease_expires_at"])
    found = started["run_uid"]
    assert isinstance(found, UUID)
    return found


def wait_for_a_decision(db: Rented, run: UUID) -> None:
    """Put the run where an approval will put it, as the back role that owns the functions."""
    with db.as_engine() as engine:
        engine.execute("update durable.runs set status = 'awaiting', lease_holder = null where run_uid = %s", (run,))


def test_a_started_run_is_held_for_five_minutes_by_whoever_asked(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        started = ask_for(app, session)
        pid = app.info.backend_pid
    (row,) = stored(db, "runs")
    assert (row["status"], row["attempt"], row["first_attempt"]) == ("running", 1, 1)
    assert row["lease_holder"] == f"app/{pid}"
    assert started["lease_expires_at"] == row["lease_expires_at"]
    assert abs(row["lease_expires_at"] - row["started_at"] - timedelta(minutes=5)) < timedelta(seconds=5)


def test_while_it_is_held_everybody_else_is_told_busy_and_not_the_attempt(db: Rented, session: UUID, run: UUID) -> None:
    with nothing_written(db), db.as_app() as app:
        for worker in ("w-0", "w-1", None):
            told = ask_for(app, session, worker=worker)
            assert (told["run_uid"], told["outcome"], told["attempt"], told["status"]) == (run, "busy", None, "running")
            assert told["lease_expires_at"] > value(app, "select clock_timestamp()")


@pytest.mark.parametrize("worker", ["w-0", "w-1"])
def test_once_the_lease_is_over_it_is_resumed_by_whoever_asks(db: Rented, session: UUID, worker: str) -> None:
    run = expire(db, session)
    with db.as_app() as app:
        told = ask_for(app, session, worker=worker)
        assert (told["run_uid"], told["outcome"], told["attempt"], told["status"]) == (run, "resumed", 2, "running")
        assert ask_for(app, session, worker=worker)["outcome"] == "busy"
    (row,) = stored(db, "runs")
    assert (row["lease_holder"], row["attempt"], row["tools_executed"]) == (worker, 2, None)


def test_a_worker_that_comes_back_under_its_name_does_not_inherit_its_lease(
    db: Rented, session: UUID, run: UUID
) -> None:
    with nothing_written(db), db.as_app() as app:
        assert ask_for(app, session, worker="w-0")["outcome"] == "busy"


def test_an_interrupted_run_is_resumed_at_once(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        told = interrupt(app, run, error={"why": "deployed\0"})
        assert (told["outcome"], told["status"], told["lease_expires_at"]) == ("interrupted", "interrupted", None)
        listed = call(app, "list_runs")
        assert (listed["interrupted_with"], listed["lease_holder"], listed["error"]) == (
            {"why": "deployed\0"},
            None,
            None,
        )
        assert ask_for(app, session)["attempt"] == 2
        assert call(app, "list_runs")["interrupted_with"] is None


def test_an_awaiting_run_waits(db: Rented, session: UUID, run: UUID) -> None:
    wait_for_a_decision(db, run)
    with nothing_written(db), db.as_app() as app:
        told = ask_for(app, session)
    assert (told["run_uid"], told["outcome"], told["attempt"], told["status"]) == (run, "awaiting", None, "awaiting")


def test_a_settled_run_is_settled_for_everybody(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        settle(app, run, result={"id": 7})
    with nothing_written(db), db.as_app() as app:
        told = ask_for(app, session, worker="w-1", max_attempts=1)
    assert (told["outcome"], told["status"], told["result"]) == ("settled", "succeeded", {"id": 7})


@pytest.mark.parametrize("lease", [None, "99 milliseconds", "0", "-1 second", "1 day 1 second"])
def test_a_lease_beyond_its_limits_is_refused(db: Rented, session: UUID, run: UUID, lease: str | None) -> None:
    with nothing_written(db), refused("22W03", match="lease is"), db.as_app() as app:
        ask_for(app, session, "inv-2", lease=lease)
    with nothing_written(db), refused("22W03", match="lease is"), db.as_app() as app:
        renew(app, run, lease=lease)


@pytest.mark.parametrize("lease", ["100 milliseconds", "1 day"])
def test_the_limits_of_a_lease_are_taken(db: Rented, session: UUID, lease: str) -> None:
    with db.as_app() as app:
        assert ask_for(app, session, lease=lease)["outcome"] == "started"


@pytest.mark.parametrize("worker", ["", " ", "w-0 ", "x" * 513])
def test_a_worker_without_a_name_is_refused(db: Rented, session: UUID, worker: str) -> None:
    with nothing_written(db), refused("22W01", match="worker"), db.as_app() as app:
        ask_for(app, session, worker=worker)


def test_the_holder_renews_its_lease(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        told = renew(app, run, lease="1 hour")
    (row,) = stored(db, "runs")
    assert (told["outcome"], told["attempt"], told["lease_expires_at"]) == ("renewed", 1, row["lease_expires_at"])
    assert row["lease_expires_at"] - row["started_at"] >= timedelta(hours=1)


def test_with_the_lease_the_effects_that_the_attempt_has_begun_are_renewed(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        begun = begin(app, run, step=1)["effect_uid"]
        long = begin(app, run, step=2, lease="1 day")
        done = begin(app, run, step=3)
        finish(app, done["effect_uid"])
        lost = begin(app, run, step=4, lease=SHORT)
    wait_until_over(db, lost["lease_expires_at"])
    with db.as_app() as app:
        renewed = renew(app, run, lease="1 hour")["lease_expires_at"]
    leases = {row["effect_uid"]: row["lease_expires_at"] for row in stored(db, "effects")}
    assert leases == {
        begun: renewed,
        long["effect_uid"]: long["lease_expires_at"],
        done["effect_uid"]: done["lease_expires_at"],
        lost["effect_uid"]: lost["lease_expires_at"],
    }


def test_effects_of_the_last_attempt_and_of_other_runs_are_not_renewed(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        first = begin(app, run)
        attempt = take_over(app, session, run)
        other = start(app, open_session(app, "s2"))
        second = begin(app, other)
        renew(app, run, attempt, lease="1 hour")
    leases = {row["effect_uid"]: row["lease_expires_at"] for row in stored(db, "effects")}
    assert leases == {effect["effect_uid"]: effect["lease_expires_at"] for effect in (first, second)}


def test_a_lease_that_is_over_is_not_renewed(db: Rented, session: UUID) -> None:
    run = expire(db, session)
    with nothing_written(db), refused("55W04", match="lease ran out"), db.as_app() as app:
        renew(app, run)


@pytest.mark.parametrize(
    ("state", "act"),
    sorted(
        set(product(NOT_HELD, ["renew", "interrupt", "settle", "append"]))
        # Equal repeats, which are harmless.
        - {("settled", "settle"), ("interrupted", "interrupt")}
    ),
)
def test_whoever_does_not_hold_the_run_writes_nothing(
    db: Rented, *, session: UUID, run: UUID, state: str, act: str
) -> None:
    with db.as_app() as app:
        if state == "settled":
            settle(app, run)
        elif state == "interrupted":
            interrupt(app, run)
        elif state == "taken over":
            take_over(app, session, run)
    if state == "awaiting":
        wait_for_a_decision(db, run)
    attempt = {"not given": None, "guessed": 7}.get(state, 1)
    sqlstate = "55W03" if state == "settled" else "55W04"
    with nothing_written(db), refused(sqlstate), db.as_app() as app:
        if act == "renew":
            renew(app, run, attempt)
        elif act == "interrupt":
            interrupt(app, run, attempt)
        elif act == "settle":
            settle(app, run, attempt=attempt)
        else:
            append(app, session, content=said("late"), invocation_id="inv-1", attempt=attempt)


@pytest.mark.parametrize("state", ["interrupted", "awaiting", "reaped"])
def test_a_worker_that_leaves_its_attempt_out_appends_nothing_to_an_open_run(
    db: Rented, session: UUID, state: str
) -> None:
    if state == "reaped":
        expire(db, session)
        with db.as_maintainer() as maintainer:
            call(maintainer, "reap_runs")
    else:
        with db.as_app() as app:
            run = start(app, session)
            if state == "interrupted":
                interrupt(app, run)
        if state == "awaiting":
            wait_for_a_decision(db, run)
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        append(app, session, content=said("late"), invocation_id="inv-1")


def test_the_users_own_words_need_no_attempt(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        assert say(app, session)["outcome"] == "appended"
        interrupt(app, run)
        assert say(app, session, "and", repeatable=True)["outcome"] == "appended"


def test_an_event_says_which_attempt_wrote_it(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        append(app, session, content=said("one"), invocation_id="inv-1", attempt=1)
        attempt = take_over(app, session, run)
        append(app, session, content=said("two"), invocation_id="inv-1", attempt=attempt)
    assert [row["attempt"] for row in sorted(stored(db, "events"), key=lambda row: row["seq"])] == [1, 2]


def test_interrupting_again_is_harmless(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        first = interrupt(app, run, error={"n": 1})
    before = stored(db, "runs")
    with db.as_app() as app:
        assert interrupt(app, run, error={"n": 2}) == {**first, "outcome": "already_interrupted"}
    assert stored(db, "runs") == before


def test_what_the_attempt_has_begun_becomes_unverified_at_once(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        begin(app, run, step=1, lease="1 day")
        done = begin(app, run, step=2)["effect_uid"]
        finish(app, done)
        other = begin(app, start(app, open_session(app, "s2")), step=3)["effect_uid"]
        interrupt(app, run)
        attempt = ask_for(app, session)["attempt"]
        assert begin(app, run, attempt, step=1)["outcome"] == "unverified"
    statuses = {row["step"]: row["status"] for row in stored(db, "effects")}
    assert statuses == {1: "unverified", 2: "succeeded", 3: "begun"}
    assert other is not None


def test_a_run_whose_lease_is_over_can_not_be_given_back(db: Rented, session: UUID) -> None:
    run = expire(db, session)
    with nothing_written(db), refused("55W04", match="lease ran out"), db.as_app() as app:
        interrupt(app, run)


@pytest.mark.parametrize("function", ["renew_lease", "interrupt_run", "cancel_run"])
def test_a_foreign_run_is_as_absent_as_none(db: Rented, run: UUID, function: str) -> None:
    more: dict[str, Any] = {"reason": "called off"} if function == "cancel_run" else {"attempt": 1}
    for tenant, user, which in (("T1", "U2", run), ("T2", "U1", run), ("T1", "U1", uuid4())):
        with nothing_written(db), refused("42W05"), db.as_app(tenant, user) as app:
            call(app, function, run_uid=which, **more)
    with nothing_written(db), refused("22W03", match="run_uid is missing"), db.as_app() as app:
        call(app, function, **more)


def test_the_attempt_never_shrinks_for_the_back_role_either(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        take_over(app, session, run)
    with nothing_written(db), refused("23W12"), db.as_engine() as engine:
        engine.execute("update durable.runs set attempt = 1")


def test_no_clock_of_the_session_extends_a_lease(db: Rented, session: UUID) -> None:
    run = expire(db, session)
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        app.execute("set local timezone = '+14'")
        renew(app, run)
