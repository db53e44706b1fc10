"""D10, google/adk-python#1641 and #1341: events were read by session id alone, so users saw each other's messages."""

from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from tests.support.calls import call, call_all, open_session, say, settle, start, texts
from tests.support.harness import Connection, refused, value
from tests.support.rented import Rented, nothing_written

PEOPLE = (("T1", "U1"), ("T1", "U2"), ("T2", "U1"))
OWN_ROWS = {"app_states": 1, "user_states": 1, "sessions": 1, "events": 1, "runs": 1}


@pytest.fixture
def mains(db: Rented) -> dict[tuple[str, str], UUID]:
    """Three people's sessions `main`, with one event and one run each."""
    sessions = {}
    for person in PEOPLE:
        with db.as_app(*person) as app:
            sessions[person] = open_session(app, "main", state={"app:a": 1, "user:b": 2})
            say(app, sessions[person], " ".join(person))
            start(app, sessions[person])
    return sessions


@pytest.mark.parametrize("person", PEOPLE)
def test_everybody_reads_their_own_main(
    db: Rented, mains: dict[tuple[str, str], UUID], person: tuple[str, str]
) -> None:
    with db.as_app(*person) as app:
        assert texts(app, mains[person]) == [" ".join(person)]
        assert call(app, "list_sessions")["session_uid"] == mains[person]
        assert call(app, "list_runs")["session_uid"] == mains[person]
        assert open_session(app, "main") == mains[person]


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("table", OWN_ROWS)
def test_a_count_without_where_covers_own_rows(
    db: Rented, mains: dict[tuple[str, str], UUID], table: str, person: tuple[str, str]
) -> None:
    with db.as_app(*person) as app:
        assert value(app, f"select count(*) from durable.{table}") == OWN_ROWS[table]


@pytest.mark.parametrize("table", OWN_ROWS)
def test_without_an_identity_a_count_is_refused(db: Rented, mains: dict[tuple[str, str], UUID], table: str) -> None:
    with refused("42W01"), db.as_app(None, None) as app:
        app.execute(f"select count(*) from durable.{table}".encode())


@pytest.mark.parametrize("table", OWN_ROWS)
def test_without_an_identity_an_empty_table_is_as_loud(db: Rented, table: str) -> None:
    with refused("42W01"), db.as_app(None, None) as app:
        app.execute(f"select count(*) from durable.{table}".encode())


@pytest.mark.parametrize("table", ["audit_log", "alembic_version"])
@pytest.mark.parametrize("who", [("T1", "U1"), (None, None)])
def test_the_app_reads_no_other_table(db: Rented, table: str, who: tuple[str | None, str | None]) -> None:
    with refused("42501"), db.as_app(*who) as app:
        app.execute(f"select count(*) from durable.{table}".encode())


CALLS: dict[str, Callable[[Connection, UUID], object]] = {
    "append_event": say,
    "append_event, expecting a revision": lambda app, uid: say(app, uid, expected_revision=1),
    "read_events": lambda app, uid: call_all(app, "read_events", session_uid=uid),
    "get_state": lambda app, uid: call(app, "get_state", session_uid=uid),
    "close_session": lambda app, uid: call(app, "close_session", session_uid=uid),
    "verify_session": lambda app, uid: call(app, "verify_session", session_uid=uid),
    "start_run": lambda app, uid: call(app, "start_run", session_uid=uid, invocation_id="inv-1"),
}
RUN_CALLS: dict[str, Callable[[Connection, UUID], object]] = {
    "settle_run": settle,
    "settle_run, with another attempt": lambda app, uid: settle(app, uid, attempt=7),
    "renew_lease": lambda app, uid: call(app, "renew_lease", run_uid=uid, attempt=1),
    "interrupt_run": lambda app, uid: call(app, "interrupt_run", run_uid=uid, attempt=1),
    "cancel_run": lambda app, uid: call(app, "cancel_run", run_uid=uid, reason="not mine"),
    "begin_effect": lambda app, uid: call(app, "begin_effect", run_uid=uid, attempt=1, tool="refund"),
    "begin_effect, for the tenant": lambda app, uid: call(
        app, "begin_effect", run_uid=uid, attempt=1, tool="refund", intent="refund:7", scope="tenant"
    ),
    "save_checkpoint": lambda app, uid: call(app, "save_checkpoint", run_uid=uid, attempt=1, step=1),
    "record_step": lambda app, uid: call(app, "record_step", run_uid=uid, attempt=1, step=1),
    "retry_verdict": lambda app, uid: call(app, "retry_verdict", run_uid=uid),
    "replay_verdict": lambda app, uid: call(app, "replay_verdict", run_uid=uid),
}


def answers(db: Rented, do: Callable[[Connection, UUID], object], uid: UUID, sqlstate: str) -> list[str | None]:
    with nothing_written(db), refused(sqlstate) as refusal, db.as_app("T1", "U1") as app:
        do(app, uid)
    told = [refusal.diag.message_primary, refusal.diag.message_detail, refusal.diag.message_hint]
    return [text and text.replace(str(uid), "...") for text in told]


@pytest.mark.parametrize("name", CALLS)
def test_anothers_session_is_as_absent_as_one_that_never_was(
    db: Rented, mains: dict[tuple[str, str], UUID], name: str
) -> None:
    never = answers(db, CALLS[name], uuid4(), "42W04")
    for person in PEOPLE[1:]:
        assert answers(db, CALLS[name], mains[person], "42W04") == never


@pytest.mark.parametrize("name", RUN_CALLS)
def test_anothers_run_is_as_absent_as_one_that_never_was(
    db: Rented, mains: dict[tuple[str, str], UUID], name: str
) -> None:
    never = answers(db, RUN_CALLS[name], uuid4(), "42W05")
    for person in PEOPLE[1:]:
        with db.as_app(*person) as app:
            run = call(app, "list_runs")["run_uid"]
        assert answers(db, RUN_CALLS[name], run, "42W05") == never


def test_listing_anothers_session_gives_no_runs(db: Rented, mains: dict[tuple[str, str], UUID]) -> None:
    with db.as_app("T1", "U1") as app:
        assert call_all(app, "list_runs", session_uid=mains["T1", "U2"]) == []


def test_state_of_the_app_is_shared_in_the_tenant_and_of_the_user_with_nobody(db: Rented) -> None:
    for (tenant, user), state in (
        (("T1", "U1"), {"app:a": 1, "user:b": 1}),
        (("T1", "U2"), {"app:c": 2, "user:b": 2}),
        (("T2", "U1"), {"app:a": 3}),
    ):
        with db.as_app(tenant, user) as app:
            open_session(app, "main", state=state)
    seen = {}
    for person in PEOPLE:
        with db.as_app(*person) as app:
            seen[person] = call(app, "get_state", app_name="support")["state"]
    assert seen == {
        ("T1", "U1"): {"app:a": 1, "app:c": 2, "user:b": 1},
        ("T1", "U2"): {"app:a": 1, "app:c": 2, "user:b": 2},
        ("T2", "U1"): {"app:a": 3},
    }
