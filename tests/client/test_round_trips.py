# Generated from test_round_trips_async.py by tools/async_to_sync.py: change that.
"""Each call is one statement and one round trip on a connection that is open already, counted on the wire."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from inspect import getmembers, isfunction
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg_pool import ConnectionPool
from sqlalchemy.engine import create_engine

from durable_pg import Durable, Identity
from durable_pg.errors import EffectInFlight, RoleMissing
from durable_pg.types import BegunEffect, RunOutcome, Session
from tests.client.proxy import Proxy, in_front_of
from tests.client.ways import POOLS
from tests.support.calls import said
from tests.support.rented import Rented


class Subject(NamedTuple):
    """What there is to call a method on."""

    session: Session
    run: RunOutcome
    effect: BegunEffect


TOLD = {"channel": "API", "seen": "nothing"}
CALLS: dict[str, Callable[[Identity, Subject], Any]] = {
    "open_session": lambda me, _: me.open_session("support", "s-2", {"plan": "gold", "app:region": "eu"}),
    "close_session": lambda me, on: me.close_session(on.session, "done"),
    "list_sessions": lambda me, _: me.list_sessions(),
    "get_state": lambda me, on: me.get_state(session=on.session),
    "append_event": lambda me, on: me.append_event(on.session, "user", said("hello"), invocation_id="inv-1"),
    "read_events": lambda me, on: me.read_events(on.session),
    "verify_session": lambda me, on: me.verify_session(on.session),
    "start_run": lambda me, on: me.start_run(on.session, "inv-2", input={"order": 7}),
    "renew_lease": lambda me, on: me.renew_lease(on.run),
    "interrupt_run": lambda me, on: me.interrupt_run(on.run, error={"why": "deployment"}),
    "cancel_run": lambda me, on: me.cancel_run(on.run, "called off"),
    "settle_run": lambda me, on: me.settle_run(on.run, "succeeded", result={"text": "done"}),
    "begin_effect": lambda me, on: me.begin_effect(on.run, "refund", {"order": 7}, intent="refund:7"),
    "finish_effect": lambda me, on: me.finish_effect(on.effect, "succeeded", result={"id": 1}),
    "resolve_effect": lambda me, on: me.resolve_effect(on.effect, "failed", TOLD),
    "list_effects": lambda me, on: me.list_effects(on.run, "begun"),
    "save_checkpoint": lambda me, on: me.save_checkpoint(on.run, 1, {"n": 1}),
    "load_checkpoint": lambda me, on: me.load_checkpoint(on.run),
    "record_step": lambda me, on: me.record_step(on.run, 1, events=[{"author": "agent", "content": 1}], state={"n": 1}),
    "list_tools": lambda me, _: me.list_tools(),
    # By others than an app, which is told so.
    "declare_tools": lambda me, _: me.declare_tools("support", {"refund": "keyed"}),
    "set_tool": lambda me, _: me.set_tool("support", "refund", replay_class="effect", reason="it is"),
    "list_runs": lambda me, on: me.list_runs(on.session),
    "retry_verdict": lambda me, on: me.retry_verdict(on.run),
    "replay_verdict": lambda me, on: me.replay_verdict(on.run),
}
# run() and run_once() are made of these.
METHODS = [
    name for name, _ in getmembers(Identity, isfunction) if not name.startswith("_") and name not in ("run", "run_once")
]
REFUSED = ("declare_tools", "set_tool", "resolve_effect")


@pytest.fixture
def proxy(db: Rented) -> Iterator[Proxy]:
    with in_front_of(db) as proxy:
        yield proxy


@pytest.fixture(params=("url", *POOLS))
def durable(proxy: Proxy, request: pytest.FixtureRequest) -> Iterator[Durable]:
    """The client over pools of one connection."""
    if request.param == "url":
        with Durable.from_url(proxy.url(), max_size=1) as durable:
            yield durable
        return
    settings = POOLS[request.param]
    with ConnectionPool(proxy.url(), min_size=1, max_size=1, open=False, kwargs=settings) as pool:
        yield Durable(pool)


def subject(me: Identity) -> Subject:
    session = me.open_session("support", "s-1")
    run = me.start_run(session, "inv-1")
    return Subject(session, run, me.begin_effect(run, "mail"))


def make(me: Identity, name: str, on: Subject) -> None:
    """Make a call; a refusal is an answer too."""
    with suppress(EffectInFlight, RoleMissing) if name in REFUSED else nullcontext():
        CALLS[name](me, on)


def assert_one_round_trip(proxy: Proxy, name: str) -> None:
    assert proxy.round_trips == 1
    (statement,) = proxy.statements
    assert f"from durable.{name}(" in statement
    assert proxy.prepared == []


def test_every_method_is_counted_here() -> None:
    assert sorted(CALLS) == sorted(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_a_call_on_a_pool_is_one_round_trip(proxy: Proxy, me: Identity, name: str) -> None:
    on = subject(me)
    proxy.forget()
    make(me, name, on)
    assert_one_round_trip(proxy, name)


@pytest.mark.parametrize("name", METHODS)
def test_a_call_in_an_open_transaction_is_one_round_trip(db: Rented, proxy: Proxy, name: str) -> None:
    with psycopg.Connection.connect(proxy.url(), prepare_threshold=0) as connection:
        me = Durable.on(connection).act_as(db.tenant("T1"), "U1")
        on = subject(me)
        proxy.forget()
        make(me, name, on)
        assert_one_round_trip(proxy, name)


@pytest.mark.parametrize("name", METHODS)
def test_a_call_in_a_transaction_of_sqlalchemy_is_one_round_trip(db: Rented, proxy: Proxy, name: str) -> None:
    engine = create_engine(proxy.url(driver="psycopg"))
    with engine.connect() as connection:
        me = Durable.on(connection).act_as(db.tenant("T1"), "U1")
        on = subject(me)
        proxy.forget()
        make(me, name, on)
        assert_one_round_trip(proxy, name)
    engine.dispose()


def test_nothing_else_is_sent_until_the_pool_is_closed(db: Rented, proxy: Proxy) -> None:
    with ConnectionPool(proxy.url(), min_size=1, max_size=1, open=False) as pool:
        me = Durable(pool).act_as(db.tenant("T1"), "U1")
        for _ in range(10):
            me.list_sessions()
    assert proxy.round_trips == 10
    assert {message.kind for message in proxy.messages} <= set("pPBDESX")


def test_a_refused_call_is_one_round_trip(proxy: Proxy, me: Identity) -> None:
    on = subject(me)
    me.settle_run(on.run, "succeeded")
    proxy.forget()
    with pytest.raises(Exception, match="settled"):
        me.append_event(on.session, "agent", 1, invocation_id="inv-1")
    assert_one_round_trip(proxy, "append_event")


def test_making_a_client_and_a_view_sends_nothing(db: Rented, proxy: Proxy) -> None:
    durable = Durable.from_url(proxy.url())
    durable.act_as(db.tenant("T1"), "U1")
    assert proxy.messages == []
    with durable:
        durable.act_as(db.tenant("T1"), "U1")
    assert proxy.statements == []
