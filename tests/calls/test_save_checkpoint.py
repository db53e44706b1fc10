"""Checkpoints: one a step, without gaps, written once."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.calls import (
    SHORT,
    ask_for,
    call,
    call_all,
    interrupt,
    load,
    open_session,
    save,
    settle,
    take_over,
    wait_until_over,
)
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored


@pytest.mark.parametrize("first", [0, 1])
def test_the_first_step_is_0_or_1_and_the_others_follow_one_by_one(db: Rented, run: UUID, first: int) -> None:
    with db.as_app() as app:
        for step in range(first, first + 4):
            told = save(app, run, step)
            assert (told["step"], told["outcome"]) == (step, "saved")
    assert [row["previous_step"] for row in sorted(stored(db, "checkpoints"), key=lambda row: row["step"])] == [
        *(None,),
        *range(first, first + 3),
    ]


@pytest.mark.parametrize(("saved", "wanted"), [([], 2), ([], 7), ([0], 2), ([1], 3), ([1], 0), ([1, 2], 4)])
def test_a_gap_is_refused(db: Rented, run: UUID, saved: list[int], wanted: int) -> None:
    with db.as_app() as app:
        for step in saved:
            save(app, run, step)
    with nothing_written(db), refused("55W10", "checkpoints_steps_have_no_gap") as refusal, db.as_app() as app:
        save(app, run, wanted)
    known = f"the last saved step is {saved[-1]}" if saved else "nothing is saved yet"
    assert refusal.diag.message_detail == known


@pytest.mark.parametrize("step", [None, -1])
def test_a_step_is_a_number_from_0(db: Rented, run: UUID, step: int | None) -> None:
    with nothing_written(db), refused("22W03", match="step"), db.as_app() as app:
        save(app, run, step)


@pytest.mark.parametrize("version", [None, -1])
def test_a_schema_version_is_a_number_from_0(db: Rented, run: UUID, version: int | None) -> None:
    with nothing_written(db), refused("22W03", match="schema_version"), db.as_app() as app:
        save(app, run, schema_version=version)


@pytest.mark.parametrize("again", ['{"b": 2, "a": 1}', '{ "a":1,"b" :2 }'])
def test_an_equal_repeat_is_harmless(db: Rented, run: UUID, again: str) -> None:
    with db.as_app() as app:
        first = save(app, run, state='{"a": 1, "b": 2}')
    with nothing_written(db), db.as_app() as app:
        assert save(app, run, state=again) == {**first, "outcome": "already_saved"}


def test_an_equal_repeat_of_an_earlier_step_by_a_later_attempt_is_harmless(
    db: Rented, session: UUID, run: UUID
) -> None:
    with db.as_app() as app:
        first = save(app, run, 1)
        save(app, run, 2)
        attempt = take_over(app, session, run)
    with nothing_written(db), db.as_app() as app:
        assert save(app, run, 1, attempt) == {**first, "outcome": "already_saved"}


@pytest.mark.parametrize(
    ("change", "column"),
    [({"state": {"a": 2}}, "state"), ({"state": None}, "state"), ({"schema_version": 2}, "schema_version")],
)
@pytest.mark.parametrize("newer", [False, True])
def test_another_state_for_a_saved_step_is_refused(
    db: Rented, run: UUID, change: dict[str, Any], column: str, newer: bool
) -> None:
    with db.as_app() as app:
        save(app, run, 1, state={"a": 1})
        if newer:
            save(app, run, 2)
    with nothing_written(db), refused("23W11", "checkpoints_pkey") as refusal, db.as_app() as app:
        save(app, run, 1, **{"state": {"a": 1}, **change})
    assert refusal.diag.column_name == column


@pytest.mark.parametrize(
    "state",
    [
        None,
        "null",
        "7",
        '"text"',
        "[]",
        {"a": ["\0\ud800\ufffe", {"\ufffe0041": 1.50}]},
        {"long": "\u00f6" * 2_000_000},
    ],
)
def test_any_state_comes_back_equal(db: Rented, run: UUID, state: Any) -> None:
    with db.as_app() as app:
        save(app, run, state=state)
        found = load(app, run)["state"]
    expected = (
        {None: None, "null": None, "7": 7, '"text"': "text", "[]": []}.get(str(state), state)
        if not isinstance(state, dict)
        else state
    )
    assert found == expected


@pytest.mark.parametrize("state", ['{"a": [1e200000]}', "[1e99999]"])
def test_a_state_that_can_not_be_stored_is_refused(db: Rented, run: UUID, state: str) -> None:
    with nothing_written(db), refused("22W02", match="state"), db.as_app() as app:
        save(app, run, state=state)


@pytest.mark.parametrize("attempt", [None, 0, 2])
def test_an_attempt_that_does_not_hold_the_run_saves_nothing(db: Rented, run: UUID, attempt: int | None) -> None:
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        save(app, run, attempt=attempt)


def test_a_stale_attempt_saves_nothing_not_even_a_repeat(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        save(app, run)
        take_over(app, session, run)
    for step in (1, 2):
        with nothing_written(db), refused("55W04"), db.as_app() as app:
            save(app, run, step)


def test_an_attempt_whose_lease_is_over_saves_nothing(db: Rented) -> None:
    with db.as_app() as app:
        started = ask_for(app, open_session(app), lease=SHORT)
    wait_until_over(db, started["lease_expires_at"])
    with nothing_written(db), refused("55W04", match="lease ran out"), db.as_app() as app:
        save(app, started["run_uid"])


@pytest.mark.parametrize(("end", "sqlstate"), [("settled", "55W03"), ("cancelled", "55W03"), ("interrupted", "55W04")])
def test_a_run_that_is_over_saves_nothing(db: Rented, run: UUID, end: str, sqlstate: str) -> None:
    with db.as_app() as app:
        if end == "settled":
            settle(app, run)
        elif end == "cancelled":
            call(app, "cancel_run", run_uid=run, reason="called off")
        else:
            interrupt(app, run)
    with nothing_written(db), refused(sqlstate), db.as_app() as app:
        save(app, run)


@pytest.mark.parametrize(("tenant", "user"), [("T1", "U2"), ("T2", "U1")])
def test_a_foreign_run_is_as_absent_as_none(db: Rented, run: UUID, tenant: str, user: str) -> None:
    with db.as_app() as app:
        save(app, run)
    for function, more in (("save_checkpoint", {"attempt": 1, "step": 2}), ("load_checkpoint", {})):
        with nothing_written(db), refused("42W05"), db.as_app(tenant, user) as app:
            call_all(app, function, run_uid=run, **more)
        with nothing_written(db), refused("42W05"), db.as_app() as app:
            call_all(app, function, run_uid=uuid4(), **more)
        with nothing_written(db), refused("22W03", match="run_uid is missing"), db.as_app() as app:
            call_all(app, function, **more)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_it_is_not_saved_under_an_older_snapshot(db: Rented, run: UUID, level: str) -> None:
    with nothing_written(db), refused("55W05"), db.connect("app") as app:
        app.execute(f"set transaction isolation level {level}".encode())
        db.act_as(app)
        save(app, run)


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("update durable.checkpoints set state = '{}'", None),
        ("delete from durable.checkpoints", None),
    ],
)
def test_the_back_role_changes_and_removes_none(db: Rented, run: UUID, statement: str, constraint: str | None) -> None:
    with db.as_app() as app:
        save(app, run)
    with nothing_written(db), refused("42501"), db.as_engine() as engine:
        engine.execute(statement.encode())


def test_the_back_role_leaves_no_gap(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        save(app, run)
    insert = """
        insert into durable.checkpoints
            (tenant_id, run_uid, step, previous_step, user_id, attempt, schema_version, event_seq, state, digest)
        select tenant_id, run_uid, %s, %s, user_id, attempt, schema_version, event_seq, state, digest
        from durable.checkpoints"""
    for step, previous, constraint in (
        (3, 2, "checkpoints_step_before_exists"),
        (3, 1, "checkpoints_steps_have_no_gap"),
        (3, None, "checkpoints_steps_have_no_gap"),
    ):
        sqlstate = "23503" if constraint.endswith("exists") else "23514"
        with nothing_written(db), refused(sqlstate, constraint), db.as_engine() as engine:
            engine.execute(insert.encode(), (step, previous))
