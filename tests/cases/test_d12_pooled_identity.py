"""D12, raia-live/amfs#363: the tenant was set on a pooled connection, and another request ran with it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool

from tests.cases import pgbouncer
from tests.support.calls import call, call_all, events, open_session, say, settle
from tests.support.harness import Connection, refused, value
from tests.support.rented import Rented, nothing_written, stored

BACKEND = "select pg_backend_pid()"
WITHOUT_IDENTITY: dict[str, Callable[[Connection, Any], object]] = {
    "open_session": lambda app, _: open_session(app, "s2"),
    "list_sessions": lambda app, _: call_all(app, "list_sessions"),
    "get_state": lambda app, _: call(app, "get_state", app_name="support"),
    "append_event": say,
    "read_events": events,
    "close_session": lambda app, session: call(app, "close_session", session_uid=session),
    "verify_session": lambda app, session: call(app, "verify_session", session_uid=session),
    "start_run": lambda app, session: call(app, "start_run", session_uid=session, invocation_id="inv-1"),
    "list_runs": lambda app, _: call_all(app, "list_runs"),
    "settle_run": settle,
    "renew_lease": lambda app, session: call(app, "renew_lease", run_uid=session, attempt=1),
    "interrupt_run": lambda app, session: call(app, "interrupt_run", run_uid=session, attempt=1),
    "cancel_run": lambda app, session: call(app, "cancel_run", run_uid=session, reason="nobody's"),
    "begin_effect": lambda app, session: call(app, "begin_effect", run_uid=session, attempt=1, tool="refund"),
    "finish_effect": lambda app, session: call(app, "finish_effect", effect_uid=session, attempt=1, status="succeeded"),
    "resolve_effect": lambda app, session: call(
        app, "resolve_effect", effect_uid=session, status="failed", evidence={"channel": "a", "seen": "b"}
    ),
    "list_effects": lambda app, _: call_all(app, "list_effects"),
    "save_checkpoint": lambda app, session: call(app, "save_checkpoint", run_uid=session, attempt=1, step=1),
    "load_checkpoint": lambda app, session: call_all(app, "load_checkpoint", run_uid=session),
    "record_step": lambda app, session: call(app, "record_step", run_uid=session, attempt=1, step=1),
    "list_tools": lambda app, _: call_all(app, "list_tools"),
    "retry_verdict": lambda app, session: call(app, "retry_verdict", run_uid=session),
    "replay_verdict": lambda app, session: call(app, "replay_verdict", run_uid=session),
    "select": lambda app, _: app.execute("select from durable.events"),
    "select of one's own rows": lambda app, session: app.execute(
        "select from durable.sessions where session_uid = %s", (session,)
    ),
}


@contextmanager
def pool_of_one(url: str, **more: Any) -> Iterator[ConnectionPool[Connection]]:
    options = {"row_factory": dict_row, "prepare_threshold": None, **more}
    pool: ConnectionPool[Connection] = ConnectionPool(
        url, min_size=1, max_size=1, open=False, kwargs=options, connection_class=psycopg.Connection[DictRow]
    )
    with pool:
        yield pool


def committed(db: Rented, app: Connection) -> None:
    db.act_as(app)
    say(app, open_session(app, "work"))


def raised(db: Rented, app: Connection) -> None:
    committed(db, app)
    raise ZeroDivisionError


def refused_by_the_database(db: Rented, app: Connection) -> None:
    committed(db, app)
    app.execute("select 1 / 0")


def timed_out(db: Rented, app: Connection) -> None:
    committed(db, app)
    app.execute("set local statement_timeout = '1ms'")
    app.execute("select pg_sleep(10)")


def rolled_back(db: Rented, app: Connection) -> None:
    committed(db, app)
    app.execute("rollback")


ENDS: dict[Callable[[Rented, Connection], None], type[Exception] | None] = {
    committed: None,
    raised: ZeroDivisionError,
    refused_by_the_database: psycopg.errors.DivisionByZero,
    timed_out: psycopg.errors.QueryCanceled,
    rolled_back: None,
}


@pytest.mark.parametrize("end", ENDS)
def test_the_next_checkout_of_a_pool_of_one_has_no_identity_however_the_work_ended(
    db: Rented, end: Callable[[Rented, Connection], None]
) -> None:
    with db.as_app() as app:
        session = open_session(app)
    with pool_of_one(db.url("app")) as pool:
        work_and_look(db, pool, end, session)


def work_and_look(
    db: Rented, pool: ConnectionPool[Connection], end: Callable[[Rented, Connection], None], session: object
) -> None:
    def work() -> None:
        with pool.connection() as app:
            backends.add(value(app, BACKEND))
            end(db, app)

    backends: set[int] = set()
    expected = ENDS[end]
    if expected is None:
        work()
    else:
        with pytest.raises(expected):
            work()
    for do in WITHOUT_IDENTITY.values():
        with nothing_written(db), refused("42W01", match="no identity is set"), pool.connection() as app:
            backends.add(value(app, BACKEND))
            do(app, session)
    assert len(backends) == 1, "the pool gave out another connection"


def test_a_connection_in_autocommit_has_an_identity_for_one_statement(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
    with pool_of_one(db.url("app"), autocommit=True) as pool, pool.connection() as app:
        db.act_as(app)
        for do in WITHOUT_IDENTITY.values():
            with nothing_written(db), refused("42W01"):
                do(app, session)
        me = "durable.act_as(%s, 'U1')"
        query = (
            f"select outcome from durable.append_event(me => {me}, session_uid => %s, author => 'user', content => %s)"
        )
        assert value(app, query, db.tenant("T1"), session, '"hello"') == "appended"
        with refused("42W01"):
            events(app, session)


def test_one_connection_serves_one_person_after_the_other(db: Rented) -> None:
    with pool_of_one(db.url("app")) as pool:
        for person in ("U1", "U2", "U1"):
            with pool.connection() as app:
                db.act_as(app, user=person)
                say(app, open_session(app, "main"), person, invocation=None)
        for person, seen in (("U1", 2), ("U2", 1)):
            with pool.connection() as app:
                db.act_as(app, user=person)
                assert value(app, "select count(*) from durable.events") == seen


@pytest.mark.skipif(pgbouncer.PROGRAM is None, reason="this machine has no pgbouncer")
@pytest.mark.parametrize("end", ENDS)
def test_behind_pgbouncer_in_transaction_mode_the_next_client_has_no_identity(
    db: Rented, end: Callable[[Rented, Connection], None]
) -> None:
    with db.as_app() as app:
        session = open_session(app)
    with pgbouncer.in_front_of(db, "app", connections=1) as url:
        with pool_of_one(url) as pool:
            work_and_look(db, pool, end, session)
        with refused("42W01"), psycopg.connect(url, row_factory=dict_row) as stranger:
            events(stranger, session)


@pytest.mark.skipif(pgbouncer.PROGRAM is None, reason="this machine has no pgbouncer")
def test_behind_pgbouncer_two_clients_take_turns_on_two_connections_and_each_stays_themselves(db: Rented) -> None:
    sessions = {}
    for user in ("U1", "U2"):
        with db.as_app(user=user) as app:
            sessions[user] = open_session(app, "main")
    with pgbouncer.in_front_of(db, "app", connections=2) as url:
        clients = {user: psycopg.connect(url, row_factory=dict_row, prepare_threshold=None) for user in ("U1", "U2")}
        try:
            for number in range(10):
                for user, client in clients.items():
                    db.act_as(client, user=user)
                    say(client, sessions[user], user, f"inv-{number}")
                # Committed in the other order, so that they change connections.
                for client in reversed(clients.values()):
                    client.commit()
                clients = dict(reversed(clients.items()))
        finally:
            for client in clients.values():
                client.close()
    found = stored(db, "events")
    assert len(found) == 20
    assert all(event["content"]["parts"][0]["text"] == event["user_id"] for event in found)
