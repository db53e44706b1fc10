"""D10, google/adk-python#1641 and #1341: events were read by session id alone, so users saw each other's messages."""

from collections.abc import Callable
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import pytest

from durable_pg import Durable, Identity
from durable_pg.errors import DurableError, RunNotFound, SessionNotFound
from durable_pg.types import RunOutcome, Session
from tests.support.calls import said
from tests.support.rented import Rented, nothing_written

Call: TypeAlias = Callable[[Identity, UUID], Any]
PEOPLE = (("T1", "U1"), ("T1", "U2"), ("T2", "U1"))


class Person:
    """Somebody with a session `main` that has one event and one run."""

    def __init__(self, me: Identity, session: Session, run: RunOutcome) -> None:
        self.me, self.session, self.run = me, session, run


@pytest.fixture
def people(db: Rented, durable: Durable) -> list[Person]:
    people = []
    for tenant, user in PEOPLE:
        me = durable.act_as(db.tenant(tenant), user)
        session = me.open_session("support", "main")
        me.append_event(session, "user", said(f"{tenant} {user}"), invocation_id="inv-1")
        people.append(Person(me, session, me.start_run(session, "inv-2")))
    return people


def test_everybody_reads_their_own_main(people: list[Person]) -> None:
    for person, (tenant, user) in zip(people, PEOPLE, strict=True):
        me, session = person.me, person.session
        assert (me.open_session("support", "main")).session_uid == session.session_uid
        assert [event.content for event in me.read_events(session)] == [said(f"{tenant} {user}")]
        assert [row.session_uid for row in me.list_sessions()] == [session.session_uid]
        assert [row.run_uid for row in me.list_runs()] == [person.run.run_uid]


SESSION_CALLS: dict[str, Call] = {
    "append_event": lambda me, uid: me.append_event(uid, "user", said("hello"), invocation_id="inv-1"),
    "append_event, with a revision": lambda me, uid: me.append_event(uid, "user", expected_revision=1),
    "append_event, with a known name": lambda me, uid: me.append_event(uid, "user", event_id="evt-1"),
    "read_events": lambda me, uid: me.read_events(uid),
    "get_state": lambda me, uid: me.get_state(session=uid),
    "close_session": lambda me, uid: me.close_session(uid),
    "verify_session": lambda me, uid: me.verify_session(uid),
    "start_run": lambda me, uid: me.start_run(uid, "inv-2"),
}
RUN_CALLS: dict[str, Call] = {
    "settle_run": lambda me, uid: me.settle_run(uid, "succeeded"),
    "settle_run, with another attempt": lambda me, uid: me.settle_run(uid, "succeeded", attempt=7),
    "retry_verdict": lambda me, uid: me.retry_verdict(uid),
    "replay_verdict": lambda me, uid: me.replay_verdict(uid),
}


def words(
    db: Rented,
    do: Call,
    me: Identity,
    uid: UUID,
    kind: type[DurableError],
) -> str:
    """Return the whole refusal, but for the uid that was asked for."""
    with nothing_written(db), pytest.raises(kind) as refusal:
        do(me, uid)
    assert type(refusal.value) is kind
    return str(refusal.value).replace(str(uid), "...")


@pytest.mark.parametrize("name", SESSION_CALLS)
def test_anothers_session_is_as_absent_as_one_that_never_was(db: Rented, people: list[Person], name: str) -> None:
    me, *others = people
    never = words(db, SESSION_CALLS[name], me.me, uuid4(), SessionNotFound)
    for other in others:
        assert words(db, SESSION_CALLS[name], me.me, other.session.session_uid, SessionNotFound) == never


@pytest.mark.parametrize("name", RUN_CALLS)
def test_anothers_run_is_as_absent_as_one_that_never_was(db: Rented, people: list[Person], name: str) -> None:
    me, *others = people
    never = words(db, RUN_CALLS[name], me.me, uuid4(), RunNotFound)
    for other in others:
        assert words(db, RUN_CALLS[name], me.me, other.run.run_uid, RunNotFound) == never


def test_listing_anothers_session_gives_no_runs(people: list[Person]) -> None:
    me, *others = people
    for other in others:
        assert me.me.list_runs(other.session) == []
