"""record_step: events, finished effects and state of a step in one call, all or none."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.calls import (
    SHORT,
    ask_for,
    begin,
    call,
    effects,
    events,
    open_session,
    record,
    said,
    save,
    settle,
    take_over,
    tool_call,
    wait_until_over,
)
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written, stored


@pytest.fixture
def effect(db: Rented, run: UUID) -> UUID:
    with db.as_app() as app:
        found = begin(app, run, step=1)["effect_uid"]
    assert isinstance(found, UUID)
    return found


def event(name: str = "e-1", **more: Any) -> dict[str, Any]:
    return {"author": "agent", "content": said("done"), "event_id": name, **more}


def done(effect: UUID, status: str = "succeeded", **more: Any) -> dict[str, Any]:
    return {"effect_uid": effect, "status": status, **more}


def test_a_step_is_recorded_as_one(db: Rented, session: UUID, run: UUID, effect: UUID) -> None:
    with db.as_app() as app:
        told = record(
            app,
            run,
            events=[event("e-1", content=tool_call("refund")), event("e-2")],
            finished=[done(effect, result={"id": 7})],
            state={"n": 1},
            schema_version=2,
        )
        (finished,) = effects(app)
        loaded = call(app, "load_checkpoint", run_uid=run)
        logged = events(app, session)
    assert told == {"run_uid": run, "step": 1, "event_seq": 3, "event_seqs": [2, 3], "outcome": "saved"}
    assert [(row["seq"], row["event_id"], row["invocation_id"], row["attempt"]) for row in logged[1:]] == [
        (2, "e-1", "inv-1", 1),
        (3, "e-2", "inv-1", 1),
    ]
    assert (finished["status"], finished["result"]) == ("succeeded", {"id": 7})
    assert (loaded["step"], loaded["schema_version"], loaded["event_seq"], loaded["state"]) == (1, 2, 3, {"n": 1})


def test_every_parameter_of_an_event_is_passed_on(db: Rented, session: UUID, run: UUID) -> None:
    given = event(
        metadata={"m": 1},
        state_delta={"k": 1},
        occurred_at="2026-01-02T03:04:05+00:00",
        repeatable=True,
        extra_tool_calls=["hidden"],
    )
    with db.as_app() as app:
        record(app, run, events=[given])
        logged = events(app, session)[-1]
        state = call(app, "get_state", app_name="support", session_uid=session)["state"]
    assert (logged["metadata"], logged["extra_tool_calls"], logged["repeatable"]) == ({"m": 1}, ["hidden"], True)
    assert logged["occurred_at"].isoformat() == "2026-01-02T03:04:05+00:00"
    assert state["k"] == 1


def test_without_a_state_no_checkpoint_is_saved(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        assert record(app, run, events=[event()])["outcome"] == "recorded"
    assert stored(db, "checkpoints") == []


@pytest.mark.parametrize("nothing", [{}, {"events": [], "finished": []}, {"events": None, "finished": None}])
def test_a_state_is_saved_without_events_and_effects(db: Rented, run: UUID, nothing: dict[str, Any]) -> None:
    with db.as_app() as app:
        told = record(app, run, state="null", **nothing)
    assert (told["outcome"], told["event_seqs"], told["event_seq"]) == ("saved", [], 1)


def test_a_repeat_is_harmless(db: Rented, run: UUID, effect: UUID) -> None:
    step: dict[str, Any] = {
        "events": [event("e-1"), event("e-2")],
        "finished": [done(effect, result={"id": 7})],
        "state": {"n": 1},
    }
    with db.as_app() as app:
        first = record(app, run, **step)
    with nothing_written(db), db.as_app() as app:
        assert record(app, run, **step) == {**first, "outcome": "already_saved"}


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("events", {"author": ""}, "22W01"),
    ("events", {"content": {}}, "22W01"),
    ("events", {"author": "agent", "metadata": []}, "22W03"),
    ("events", {"author": "agent", "occurred_at": "infinity"}, "22W03"),
    ("events", {"author": "agent", "event_id": "e-1", "content": said("other words")}, "23W05"),
    ("events", {"author": "user", "content": said("other words")}, "23W06"),
    ("events", {"author": "agent", "metadata": {"actions": {"rewind_before_invocation_id": "none"}}}, "22W04"),
    ("finished", {"effect_uid": str(uuid4()), "status": "succeeded"}, "42W07"),
    ("finished", {"status": "succeeded"}, "22W03"),
    ("finished", {"effect_uid": "the other", "status": "begun"}, "22W03"),
    ("finished", {"effect_uid": "the other", "status": "failed", "result": {}}, "22W03"),
    ("finished", {"effect_uid": "the first", "status": "failed"}, "23W02"),
]


@pytest.mark.parametrize(("field", "last", "sqlstate"), BAD)
def test_a_refusal_of_the_last_item_leaves_nothing(
    db: Rented, *, run: UUID, effect: UUID, field: str, last: dict[str, Any], sqlstate: str
) -> None:
    with db.as_app() as app:
        other = begin(app, run, step=1, ordinal=1)["effect_uid"]
    named = {"the first": str(effect), "the other": str(other)}
    last = {key: named.get(str(value), value) for key, value in last.items()}
    step: dict[str, Any] = {"events": [event("e-1")], "finished": [done(effect)]}
    step[field].append(last)
    with nothing_written(db), refused(sqlstate), db.as_app() as app:
        record(app, run, state={"n": 1}, **step)


@pytest.mark.parametrize(
    ("change", "sqlstate"),
    [({"step": 3}, "55W10"), ({"state": '{"n": 1e200000}'}, "22W02"), ({"schema_version": None}, "22W03")],
)
def test_a_state_that_is_refused_takes_the_step_with_it(
    db: Rented, run: UUID, effect: UUID, change: dict[str, Any], sqlstate: str
) -> None:
    step: dict[str, Any] = {"events": [event()], "finished": [done(effect)], "state": {"n": 1}, **change}
    with nothing_written(db), refused(sqlstate), db.as_app() as app:
        record(app, run, **step)


def test_another_state_for_the_step_takes_the_new_events_with_it(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        save(app, run, 1, state={"n": 1})
    with nothing_written(db), refused("23W11"), db.as_app() as app:
        record(app, run, events=[event()], state={"n": 2})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"events": {}}, r"events is a JSON object, it has to be an array"),
        ({"finished": "7"}, r"finished is a JSON number"),
        ({"events": [event(), 7]}, r"events\[1\] is a JSON number, it has to be an object"),
        ({"events": [{**event(), "contents": {}}]}, r"events\[0\] has an unknown key: contents"),
        ({"events": [event(), {**event("e-2"), "attempt": 1}]}, r"events\[1\] has an unknown key: attempt"),
        ({"events": [{**event(), "invocation_id": "inv-1"}]}, r"unknown key: invocation_id"),
        ({"finished": [{"effect_uid": None, "state": "succeeded"}]}, r"finished\[0\] has an unknown key: state"),
        ({"events": [{"author": "a\0b"}]}, "is not what it has to be"),
        ({"events": [{"auth\0or": "a"}]}, "unknown key"),
        ({"events": [event("e\0")]}, "is not what it has to be"),
        ({"events": [event(extra_tool_calls=["\0"])]}, "is not what it has to be"),
        ({"events": [event(extra_tool_calls="refund")]}, "is not what it has to be"),
        ({"events": [event(extra_tool_calls=[["a"], ["b"]])]}, "is not what it has to be"),
        ({"events": [event(repeatable="perhaps")]}, "is not what it has to be"),
        ({"events": [event(occurred_at="yesterday at noon")]}, "is not what it has to be"),
        ({"events": [event(occurred_at="2026-13-01")]}, "is not what it has to be"),
        ({"finished": [{"effect_uid": "re_7", "status": "failed"}]}, "is not what it has to be"),
        ({"finished": [{"effect_uid": 7, "status": "failed"}]}, "is not what it has to be"),
    ],
)
def test_what_is_no_list_of_events_and_effects_is_refused(
    db: Rented, run: UUID, given: dict[str, Any], message: str
) -> None:
    with nothing_written(db), refused("22W03", match=message), db.as_app() as app:
        record(app, run, **given)


@pytest.mark.parametrize("time", ["2026-01-01 00:00 Nowhere/Land", "2026-01-01 00:00+99:99"])
def test_a_time_in_a_zone_that_is_none_is_refused(db: Rented, run: UUID, time: str) -> None:
    with nothing_written(db), refused("22W03", match="is not what it has to be"), db.as_app() as app:
        record(app, run, events=[event(occurred_at=time)])


@pytest.mark.parametrize(
    "odd",
    [
        {"a": "\0"},
        {"a": ["\ud800"]},
        {"a": "\ufffe0041\U0001f600"},
        [1, 1.5],
        "text",
        7,
    ],
)
def test_odd_json_inside_an_item_comes_back_equal(db: Rented, session: UUID, run: UUID, effect: UUID, odd: Any) -> None:
    with db.as_app() as app:
        record(app, run, events=[event(content=odd)], finished=[done(effect, result=odd)], state='{"s": "\\u0000"}')
        assert events(app, session)[-1]["content"] == odd
        assert effects(app)[0]["result"] == odd
        assert call(app, "load_checkpoint", run_uid=run)["state"] == {"s": "\0"}


@pytest.mark.parametrize("step", [None, -1])
def test_a_step_is_named_even_without_a_state(db: Rented, run: UUID, step: int | None) -> None:
    with nothing_written(db), refused("22W03", match="step"), db.as_app() as app:
        record(app, run, step, events=[event()])


@pytest.mark.parametrize("attempt", [None, 0, 2])
def test_an_attempt_that_does_not_hold_the_run_records_nothing(db: Rented, run: UUID, attempt: int | None) -> None:
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        record(app, run, attempt=attempt, events=[event()], state={})


def test_a_stale_attempt_records_nothing(db: Rented, session: UUID, run: UUID, effect: UUID) -> None:
    with db.as_app() as app:
        take_over(app, session, run)
    steps: list[dict[str, Any]] = [{"events": [event()]}, {"finished": [done(effect)]}, {"state": {}}, {}]
    for given in steps:
        with nothing_written(db), refused("55W04"), db.as_app() as app:
            record(app, run, **given)


def test_an_attempt_whose_lease_is_over_records_nothing(db: Rented) -> None:
    with db.as_app() as app:
        started = ask_for(app, open_session(app), lease=SHORT)
    wait_until_over(db, started["lease_expires_at"])
    with nothing_written(db), refused("55W04", match="lease ran out"), db.as_app() as app:
        record(app, started["run_uid"], events=[event()])


def test_a_settled_run_records_nothing(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        settle(app, run)
    with nothing_written(db), refused("55W03"), db.as_app() as app:
        record(app, run, events=[event()])


def test_an_effect_that_the_last_attempt_began_is_not_this_ones_to_finish(
    db: Rented, session: UUID, run: UUID, effect: UUID
) -> None:
    with db.as_app() as app:
        attempt = take_over(app, session, run)
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        record(app, run, attempt=attempt, events=[event()], finished=[done(effect)], state={})


def test_an_effect_that_another_run_began_is_not_this_ones_to_finish(db: Rented, effect: UUID, other_run: UUID) -> None:
    with nothing_written(db), refused("55W04"), db.as_app() as app:
        record(app, other_run, events=[event()], finished=[done(effect)], state={})


@pytest.mark.parametrize(("tenant", "user"), [("T1", "U2"), ("T2", "U1")])
def test_a_foreign_run_is_as_absent_as_none(db: Rented, run: UUID, tenant: str, user: str) -> None:
    with nothing_written(db), refused("42W05"), db.as_app(tenant, user) as app:
        record(app, run, events=[event()])
    with nothing_written(db), refused("42W05"), db.as_app() as app:
        record(app, uuid4(), events=[event()])


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_it_is_not_recorded_under_an_older_snapshot(db: Rented, run: UUID, level: str) -> None:
    with nothing_written(db), refused("55W05"), db.connect("app") as app:
        app.execute(f"set transaction isolation level {level}".encode())
        db.act_as(app)
        record(app, run, events=[event()])


def test_identity_and_step_are_one_statement(db: Rented, run: UUID) -> None:
    with db.as_app(None, None) as app:
        told = app.execute(
            "select * from durable.record_step(me => durable.act_as(%s, 'U1'), run_uid => %s, attempt => 1, step => 1,"
            " state => '{}')",
            (db.tenant("T1"), run),
        ).fetchone()
    assert told is not None
    assert told["outcome"] == "saved"
