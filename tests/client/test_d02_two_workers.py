"""D02, google/adk-python#4751: two servers resumed one session from stale copies and mixed their events."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from threading import Barrier

import pytest

from durable_pg import AsyncDurable, AsyncIdentity, Durable, Identity
from durable_pg.errors import StaleRevision
from durable_pg.types import Session
from tests.support.rented import Rented, nothing_written

WORKERS = 8
EVENTS_EACH = 5


@pytest.fixture
def durable(db: Rented) -> Iterator[Durable]:
    with Durable.from_url(db.url("app"), max_size=WORKERS) as durable:
        yield durable


@pytest.fixture
def me(db: Rented, durable: Durable) -> Identity:
    return durable.act_as(db.tenant("T1"), "U1")


def test_the_writer_with_the_stale_copy_is_refused_whatever_the_timestamps_say(db: Rented, me: Identity) -> None:
    a = me.open_session("support", "s1")
    b = me.open_session("support", "s1")
    now = datetime.now(timezone.utc)
    me.append_event(a, "agent", "a1", expected_revision=a.revision, occurred_at=now + timedelta(seconds=1))
    for occurred_at in (now, now + timedelta(hours=1), None):
        with nothing_written(db), pytest.raises(StaleRevision) as refusal:
            me.append_event(b, "agent", "b1", expected_revision=b.revision, occurred_at=occurred_at)
        assert refusal.value.detail == "expected revision 0, current revision 1"
        assert refusal.value.names["session_uid"] == str(b.session_uid)


def test_threads_that_reload_and_retry_get_all_their_events_in(me: Identity) -> None:
    session = me.open_session("support", "s1")
    together = Barrier(WORKERS)

    def work(name: int) -> int:
        own, stale = me.open_session("support", "s1"), 0
        revision = own.revision
        together.wait()
        for number in range(EVENTS_EACH):
            while True:
                try:
                    revision = me.append_event(own, "agent", [name, number], expected_revision=revision).revision
                    break
                except StaleRevision:
                    stale += 1
                    found = me.get_state(session=own).revision
                    assert found is not None
                    revision = found
        return stale

    with ThreadPoolExecutor(WORKERS) as threads:
        stale = sum(threads.map(work, range(WORKERS)))
    assert stale > 0, "the workers never met"
    assert_complete(me, session)


async def test_tasks_that_reload_and_retry_get_all_their_events_in(db: Rented, me: Identity) -> None:
    session = me.open_session("support", "s1")

    async def work(other: AsyncIdentity, name: int) -> int:
        revision = stale = 0
        for number in range(EVENTS_EACH):
            while True:
                try:
                    appended = await other.append_event(session, "agent", [name, number], expected_revision=revision)
                    revision = appended.revision
                    break
                except StaleRevision:
                    stale += 1
                    found = (await other.get_state(session=session)).revision
                    assert found is not None
                    revision = found
        return stale

    async with AsyncDurable.from_url(db.url("app"), max_size=WORKERS) as durable:
        other = durable.act_as(db.tenant("T1"), "U1")
        stale = sum(await asyncio.gather(*(work(other, name) for name in range(WORKERS))))
    assert stale > 0, "the workers never met"
    assert_complete(me, session)


def assert_complete(me: Identity, session: Session) -> None:
    events = me.read_events(session)
    assert [event.seq for event in events] == list(range(1, WORKERS * EVENTS_EACH + 1))
    for name in range(WORKERS):
        assert [event.content[1] for event in events if event.content[0] == name] == list(range(EVENTS_EACH))
    assert me.verify_session(session).intact
