"""D10, google/adk-python#1641 and #1341: events were read by session id alone, so users saw each other's messages."""

from collections.abc import Callable
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from durable_pg import AsyncDurable, AsyncIdentity
from durable_pg.errors import DurableError, RunNotFound, SessionNotFound
from durable_pg.types import RunOutcome, Session
from tests.support.calls import said
from tests.support.rented import Rented, nothing_written

Call: TypeAlias = Callable[[AsyncIdentity, UUID], Any]
PEOPLE = (("T1", "U1"), ("T1", "U2"), ("T2", "U1"))


class AsyncPerson:
    """Somebody with a session `main` that has one event and one run."""

    def __init__(self, me: AsyncIdentity, session: Session, run: RunOutcome) -> None:
        self.me, self.session, self.run = me, session, run


@pytest_asyncio.fixture
async def people_async(db: Rented, durable_async: AsyncDurable) -> list[AsyncPerson]:
    people = []
    for tenant, user in PEOPLE:
        me = durable_async.act_as(db.tenant(tenant), user)
        session = await me.open_session("support", "main")
        await me.append_event(session, "user", said(f"{tenant} {user}"), invocation_id="inv-1")
        people.append(AsyncPerson(me, session, await me.start_run(session, "inv-2")))
    return people


async def test_everybody_reads_their_own_main(people_async: list[AsyncPerson]) -> None:
    for person, (tenant, user) in zip(people_async, PEOPLE, strict=True):
        me, session = person.me, person.session
        assert (await me.open_session("support", "main")).session_uid == session.session_uid
        assert [event.content for event in await me.read_events(session)] == [said(f"{tenant} {user}")]
        assert [row.session_uid for row in await me.list_sessions()] == [session.session_uid]
        assert [row.run_uid for row in await me.list_runs()] == [person.run.run_uid]


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


async def words_async(
    db: Rented,
    do: Call,
    me: AsyncIdentity,
    uid: UUID,
    kind: type[DurableError],
) -> str:
    """Return the whole refusal, but for the uid that was asked for."""
    with nothing_written(db), pytest.raises(kind) as refusal:
        await do(me, uid)
    assert type(refusal.value) is kind
    return str(refusal.value).replace(str(uid), "...")


@pytest.mark.parametrize("name", SESSION_CALLS)
async def test_anothers_session_is_as_absent_as_one_that_never_was(
    db: Rented, people_async: list[AsyncPerson], name: str
) -> None:
    me, *others = people_async
    never = await words_async(db, SESSION_CALLS[name], me.me, uuid4(), SessionNotFound)
    for other in others:
        assert await words_async(db, SESSION_CALLS[name], me.me, other.session.session_uid, SessionNotFound) == never


@pytest.mark.parametrize("name", RUN_CALLS)
async def test_anothers_run_is_as_absent_as_one_that_never_was(
    db: Rented, people_async: list[AsyncPerson], name: str
) -> None:
    me, *others = people_async
    never = await words_async(db, RUN_CALLS[name], me.me, uuid4(), RunNotFound)
    for other in others:
        assert await words_async(db, RUN_CALLS[name], me.me, other.run.run_uid, RunNotFound) == never


async def test_listing_anothers_session_gives_no_runs(people_async: list[AsyncPerson]) -> None:
    me, *others = people_async
    for other in others:
        assert await me.me.list_runs(other.session) == []
