"""D01, google/adk-python#4506: a retry of an invocation appended the user's message a second time."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from durable_pg import Durable, Identity
from durable_pg.errors import OpeningMessageDiffers
from durable_pg.types import Session
from tests.client import workers
from tests.client.built import call_of
from tests.support.calls import said, tool_response
from tests.support.rented import Rented, nothing_written, stored

MESSAGE: dict[str, Any] = {"author": "user", "content": said("refund order 7"), "invocation_id": "inv-1"}
KINDS = (workers.append, workers.append_in_a_loop)


@pytest.fixture
def me(db: Rented) -> Iterator[Identity]:
    with Durable.from_url(db.url("app"), max_size=1) as durable:
        yield durable.act_as(db.tenant("T1"), "U1")


@pytest.fixture
def session(me: Identity) -> Session:
    return me.open_session("support", "s1")


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        yield processes


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_a_second_process_that_appends_the_same_message_is_told_duplicate(
    db: Rented, session: Session, processes: ProcessPoolExecutor, first: Any, second: Any
) -> None:
    where: Any = (db.url("app"), db.tenant("T1"), session.session_uid)
    assert processes.submit(first, *where, **MESSAGE).result(60) == ("appended", 1)
    with nothing_written(db):
        assert processes.submit(second, *where, **MESSAGE).result(60) == ("duplicate", 1)


def test_of_two_processes_at_the_same_time_one_appends_it(
    db: Rented, session: Session, processes: ProcessPoolExecutor
) -> None:
    where: Any = (db.url("app"), db.tenant("T1"), session.session_uid)
    both = [processes.submit(kind, *where, **MESSAGE) for kind in KINDS]
    assert sorted(one.result(60) for one in both) == [("appended", 1), ("duplicate", 1)]
    assert len(stored(db, "events")) == 1


def test_what_else_a_user_or_a_model_adds_to_the_invocation_is_accepted(me: Identity, session: Session) -> None:
    me.append_event(session, **MESSAGE)
    others = [
        me.append_event(session, "user", tool_response("lookup"), invocation_id="inv-1"),
        me.append_event(session, "user", state_delta={"a": 1}, invocation_id="inv-1"),
        me.append_event(session, "agent", said("refund order 7"), invocation_id="inv-1"),
    ]
    assert [(other.outcome, other.seq) for other in others] == [("appended", 2), ("appended", 3), ("appended", 4)]
    assert [event.opening for event in me.read_events(session)] == [True, False, False, False]
    assert me.get_state(session=session).state == {"a": 1}


def test_another_message_for_the_invocation_is_refused(db: Rented, me: Identity, session: Session) -> None:
    me.append_event(session, **MESSAGE)
    with nothing_written(db), pytest.raises(OpeningMessageDiffers) as refusal:
        me.append_event(session, "user", said("refund order 8"), invocation_id="inv-1")
    assert refusal.value.names["invocation_id"] == "inv-1"


@pytest.mark.parametrize(("event_id", "repeatable"), [(None, False), ("", False), ("evt-1", True)])
def test_an_event_is_sent_again_by_itself_only_when_its_name_makes_it_one(
    session: Session, event_id: str | None, repeatable: bool
) -> None:
    call = call_of(lambda me: me.append_event(session, "user", "x", invocation_id="inv-1", event_id=event_id))
    assert call.repeatable is repeatable
