# Generated from test_faults_async.py by tools/async_to_sync.py: change that.
"""A connection that breaks: what the client says of the call, what it does about it, and what was written."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from psycopg_pool import ConnectionPool

from durable_pg import Durable, Identity
from durable_pg.errors import CannotConnect, ConnectionLost, SessionClosed
from durable_pg.types import BegunEffect, RunOutcome, Session
from tests.client.disturbing import told
from tests.client.proxy import Proxy, in_front_of
from tests.support.rented import Rented, nothing_written, stored


@pytest.fixture
def proxy(db: Rented) -> Iterator[Proxy]:
    with in_front_of(db) as proxy:
        yield proxy


@pytest.fixture(params=("url", "pool"))
def durable(proxy: Proxy, request: pytest.FixtureRequest) -> Iterator[Durable]:
    """The client over a pool of its own and over one that was brought."""
    if request.param == "url":
        with Durable.from_url(proxy.url(), max_size=1, timeout=2) as durable:
            yield durable
        return
    with ConnectionPool(proxy.url(), min_size=1, max_size=1, timeout=2, open=False) as pool:
        yield Durable(pool)


@pytest.fixture
def session(me: Identity, proxy: Proxy) -> Session:
    """An open session; nothing was sent yet."""
    session = me.open_session("support", "s-1")
    proxy.forget()
    return session


def test_an_append_that_may_not_be_repeated_is_sent_once(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    proxy.lose_answers()
    with pytest.raises(ConnectionLost) as caught:
        me.append_event(session, "agent", 1, invocation_id="inv-1")
    assert told(caught.value) == (ConnectionLost, True, "append_event")
    assert caught.value.names == {
        "tenant_id": db.tenant("T1"),
        "user_id": "U1",
        "session_uid": str(session.session_uid),
        "invocation_id": "inv-1",
    }
    assert "may have taken effect" in str(caught.value)
    assert len(stored(db, "events")) == 1
    assert len(proxy.statements) == 1


def test_an_append_with_an_event_id_is_repeated_and_recorded_once(
    db: Rented, proxy: Proxy, me: Identity, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    proxy.lose_answers()
    appended = me.append_event(session, "agent", 1, event_id="evt-1")
    assert (appended.outcome, appended.seq, appended.event_id) == ("duplicate", 1, "evt-1")
    assert len(stored(db, "events")) == 1
    assert len(proxy.statements) == 2
    assert [record.name for record in caplog.records if "sending it again" in record.message] == ["durable_pg"]


def test_a_repeat_by_revision_is_told_duplicate(db: Rented, proxy: Proxy, me: Identity, session: Session) -> None:
    proxy.lose_answers()
    appended = me.append_event(session, "agent", 1, event_id="evt-1", expected_revision=0)
    assert (appended.outcome, appended.revision) == ("duplicate", 1)
    assert len(stored(db, "events")) == 1


def test_a_request_that_never_arrived_is_one_that_may_have_taken_effect(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    proxy.lose_requests()
    with nothing_written(db), pytest.raises(ConnectionLost) as caught:
        me.append_event(session, "agent", 1)
    assert told(caught.value) == (ConnectionLost, True, "append_event")
    assert len(proxy.statements) == 1


def test_a_request_that_never_arrived_is_repeated_if_it_may_be(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    proxy.lose_requests()
    appended = me.append_event(session, "agent", 1, event_id="evt-1")
    assert appended.outcome == "appended"
    assert len(stored(db, "events")) == 1


def test_a_run_is_never_started_twice(db: Rented, proxy: Proxy, me: Identity, session: Session) -> None:
    proxy.lose_answers()
    with pytest.raises(ConnectionLost) as caught:
        me.start_run(session, "inv-1")
    assert told(caught.value) == (ConnectionLost, True, "start_run")
    assert caught.value.names["invocation_id"] == "inv-1"
    assert len(proxy.statements) == 1
    assert [run.status for run in me.list_runs(session)] == ["running"]
    assert len(stored(db, "runs")) == 1


def test_a_run_is_settled_once(db: Rented, proxy: Proxy, me: Identity, session: Session) -> None:
    run = me.start_run(session, "inv-1")
    proxy.lose_answers()
    settled = me.settle_run(run, "succeeded", result={"text": "done"})
    assert (settled.outcome, settled.result) == ("already_settled", {"text": "done"})
    assert [row["status"] for row in stored(db, "runs")] == ["succeeded"]


def test_an_effect_is_never_begun_twice(db: Rented, proxy: Proxy, me: Identity, session: Session) -> None:
    run = me.start_run(session, "inv-1")
    proxy.lose_answers()
    with pytest.raises(ConnectionLost) as caught:
        me.begin_effect(run, "refund", step=1)
    assert told(caught.value) == (ConnectionLost, True, "begin_effect")
    assert (caught.value.names["tool"], caught.value.names["step"]) == ("refund", "1")
    assert [row["status"] for row in stored(db, "effects")] == ["begun"]


REPEATED: dict[str, tuple[Callable[[Identity, RunOutcome, BegunEffect], Any], str]] = {
    "renew_lease": (lambda me, run, _: me.renew_lease(run), "renewed"),
    "interrupt_run": (lambda me, run, _: me.interrupt_run(run), "already_interrupted"),
    "cancel_run": (lambda me, run, _: me.cancel_run(run, "called off"), "already_settled"),
    "finish_effect": (lambda me, _, effect: me.finish_effect(effect, "succeeded"), "already_finished"),
    "save_checkpoint": (lambda me, run, _: me.save_checkpoint(run, 1, {}), "already_saved"),
    "record_step": (
        lambda me, run, _: me.record_step(run, 1, events=[{"author": "agent", "event_id": "e-1"}], state={}),
        "already_saved",
    ),
}


@pytest.mark.parametrize("name", REPEATED)
def test_what_is_repeatable_by_nature_is_repeated_and_done_once(
    db: Rented, proxy: Proxy, me: Identity, session: Session, name: str
) -> None:
    run = me.start_run(session, "inv-1")
    effect = me.begin_effect(run, "refund")
    proxy.forget()
    proxy.lose_answers()
    make, outcome = REPEATED[name]
    assert (make(me, run, effect)).outcome == outcome
    assert len(proxy.statements) == 2
    assert len(stored(db, "events")) == (name == "record_step")


def test_a_step_with_an_event_that_has_no_name_is_sent_once(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    run = me.start_run(session, "inv-1")
    proxy.lose_answers()
    with pytest.raises(ConnectionLost) as caught:
        me.record_step(run, 1, events=[{"author": "agent", "event_id": "e-1"}, {"author": "agent"}])
    assert told(caught.value) == (ConnectionLost, True, "record_step")
    assert len(stored(db, "events")) == 2


def test_a_session_with_a_name_is_opened_once(db: Rented, proxy: Proxy, me: Identity) -> None:
    proxy.lose_answers()
    assert (me.open_session("support", "s-1")).outcome == "found"
    assert len(stored(db, "sessions")) == 1


def test_a_session_without_a_name_is_not_opened_again(db: Rented, proxy: Proxy, me: Identity) -> None:
    proxy.lose_answers()
    with pytest.raises(ConnectionLost) as caught:
        me.open_session("support")
    assert told(caught.value) == (ConnectionLost, True, "open_session")
    assert len(stored(db, "sessions")) == 1


def test_a_session_is_closed_once(db: Rented, proxy: Proxy, me: Identity, session: Session) -> None:
    proxy.lose_answers()
    assert (me.close_session(session)).outcome == "already_closed"


READS: dict[str, Callable[[Identity, Session], Any]] = {
    "list_sessions": lambda me, _: me.list_sessions(),
    "get_state": lambda me, session: me.get_state(session=session),
    "read_events": lambda me, session: me.read_events(session),
    "verify_session": lambda me, session: me.verify_session(session),
    "list_runs": lambda me, session: me.list_runs(session),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_is_repeated(proxy: Proxy, me: Identity, session: Session, name: str) -> None:
    proxy.lose_answers()
    lost = READS[name](me, session)
    assert len(proxy.statements) == 2
    assert lost == READS[name](me, session)


@pytest.mark.parametrize("name", ["retry_verdict", "replay_verdict"])
def test_a_verdict_is_repeated(proxy: Proxy, me: Identity, session: Session, name: str) -> None:
    run = me.start_run(session, "inv-1")
    proxy.lose_answers()
    assert (getattr(me, name)(run)).reason in {"no_tool_recorded", "not_settled"}


def test_a_call_is_repeated_once_and_no_more(db: Rented, proxy: Proxy, me: Identity, session: Session) -> None:
    proxy.lose_answers(times=2)
    with pytest.raises(ConnectionLost) as caught:
        me.append_event(session, "agent", 1, event_id="evt-1")
    assert told(caught.value) == (ConnectionLost, True, "append_event")
    assert len(proxy.statements) == 2
    assert len(stored(db, "events")) == 1


def test_a_refusal_of_the_repeat_does_not_speak_for_the_first_time(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    def close_session() -> None:
        with db.as_app() as app:
            app.execute("select durable.close_session(session_uid => %s)", (session.session_uid,))

    proxy.lose_answers(meanwhile=close_session)
    with pytest.raises(SessionClosed) as caught:
        me.append_event(session, "agent", 1, event_id="evt-1")
    assert told(caught.value) == (SessionClosed, True, "append_event")
    assert len(stored(db, "events")) == 1


def test_a_server_that_is_gone_before_the_repeat_does_not_speak_for_the_first_time(
    db: Rented, proxy: Proxy, me: Identity, session: Session
) -> None:
    proxy.lose_answers(meanwhile=proxy.refuse)
    with pytest.raises(CannotConnect) as caught:
        me.append_event(session, "agent", 1, event_id="evt-1")
    assert told(caught.value) == (CannotConnect, True, "append_event")
    assert len(stored(db, "events")) == 1


def test_calls_go_on_after_a_connection_was_lost(db: Rented, proxy: Proxy, me: Identity, session: Session) -> None:
    for lose in (proxy.lose_answers, proxy.lose_requests):
        lose()
        with pytest.raises(ConnectionLost):
            me.append_event(session, "agent", 1)
        me.append_event(session, "agent", 2)
    assert [event.content for event in me.read_events(session)] == [1, 2, 2]
