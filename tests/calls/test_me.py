"""me: every call takes its identity as an argument, and takes nothing else for one."""

import json
from typing import Any

import pytest
from psycopg import sql

from tests.support.calls import call, open_session, start
from tests.support.harness import Connection, refused
from tests.support.rented import Rented, nothing_written

CALLS = {
    "open_session": "app_name => 'support', session_id => 's1'",
    "list_sessions": "",
    "get_state": "app_name => 'support'",
    "append_event": "session_uid => %(session)s, "
    "author => 'user', content => '\"hi\"', invocation_id => 'inv-1', event_id => 'e1'",
    "read_events": "session_uid => %(session)s",
    "verify_session": "session_uid => %(session)s",
    "start_run": "session_uid => %(session)s, invocation_id => 'inv-1'",
    "list_runs": "session_uid => %(session)s",
    "renew_lease": "run_uid => %(run)s, attempt => 1",
    "interrupt_run": "run_uid => %(run)s, attempt => 1",
    "cancel_run": "run_uid => %(run)s, reason => 'called off'",
    "begin_effect": "run_uid => %(run)s, attempt => 1, tool => 'mail'",
    "finish_effect": "effect_uid => %(effect)s, attempt => 1, status => 'succeeded'",
    "resolve_effect": 'effect_uid => %(unknown)s, status => \'failed\', evidence => \'{"channel": "a", "seen": "b"}\'',
    "list_effects": "run_uid => %(run)s",
    "save_checkpoint": "run_uid => %(run)s, attempt => 1, step => 1, state => '{}'",
    "load_checkpoint": "run_uid => %(run)s",
    "record_step": 'run_uid => %(run)s, attempt => 1, step => 1, events => \'[{"author": "a", "event_id": "e1"}]\'',
    "list_tools": "",
    "retry_verdict": "run_uid => %(run)s",
    "replay_verdict": "run_uid => %(run)s",
    "settle_run": "run_uid => %(run)s, attempt => 1, status => 'succeeded'",
    "close_session": "session_uid => %(session)s",
}


@pytest.fixture
def uids(db: Rented) -> dict[str, Any]:
    with db.as_app() as app:
        session = open_session(app)
        run = start(app, session)
        effect, unknown = (
            call(app, "begin_effect", run_uid=run, attempt=1, tool=tool)["effect_uid"] for tool in ("refund", "book")
        )
        call(app, "finish_effect", effect_uid=unknown, attempt=1, status="unverified")
        return {"session": session, "run": run, "effect": effect, "unknown": unknown}


def ask(app: Connection, function: str, who: str, **parameters: Any) -> list[dict[str, Any]]:
    more = f", {CALLS[function]}" if CALLS[function] else ""
    # The arguments hold braces, so they are no format.
    query = sql.SQL("select * from {}").format(sql.Identifier("durable", function)) + sql.SQL(f"(me => {who}{more})")
    return app.execute(query, parameters).fetchall()


@pytest.mark.parametrize("function", CALLS)
def test_a_call_takes_its_identity_as_an_argument(db: Rented, uids: dict[str, Any], function: str) -> None:
    with db.as_app(None, None) as app:
        assert ask(app, function, "durable.act_as(%(tenant)s, 'U1')", tenant=db.tenant("T1"), **uids) is not None


@pytest.mark.parametrize("function", CALLS)
def test_a_call_works_alike_after_act_as(db: Rented, uids: dict[str, Any], function: str) -> None:
    with db.as_app() as app:
        app.execute("savepoint before")
        left_out = ask(app, function, "null", **uids)
        app.execute("rollback to savepoint before")
        given = ask(app, function, "durable.act_as(%(tenant)s, 'U1')", tenant=db.tenant("T1"), **uids)
    assert [as_ever(row) for row in given] == [as_ever(row) for row in left_out]


def as_ever(row: dict[str, Any]) -> dict[str, Any]:
    """Leave out what the database makes anew each time, a uid of the row's own or a time."""
    times = ("created_at", "updated_at", "closed_at", "settled_at", "lease_expires_at", "begun_at", "finished_at")
    return {**row, **dict.fromkeys(times), "effect_uid": None}


@pytest.mark.parametrize("function", CALLS)
def test_a_me_made_by_hand_is_refused(db: Rented, uids: dict[str, Any], function: str) -> None:
    with nothing_written(db), db.as_app() as app:
        for me in ("U1", "", " ", "[]", '["T1", "U2"]', "x" * 100_000):
            with refused("42W02", match="me is not the identity of this transaction"), app.transaction():
                ask(app, function, "%(me)s", me=me, **uids)


@pytest.mark.parametrize("function", CALLS)
def test_a_me_made_by_hand_gives_no_identity(db: Rented, uids: dict[str, Any], function: str) -> None:
    me = json.dumps([db.tenant("T1"), "U1"])
    with nothing_written(db), refused("42W01"), db.as_app(None, None) as app:
        ask(app, function, "%(me)s", me=me, **uids)


@pytest.mark.parametrize("function", CALLS)
def test_a_me_of_somebody_else_is_refused(db: Rented, uids: dict[str, Any], function: str) -> None:
    with nothing_written(db), refused("42W02", match="already acts as somebody else"), db.as_app() as app:
        ask(app, function, "durable.act_as(%(tenant)s, 'U2')", tenant=db.tenant("T1"), **uids)


@pytest.mark.parametrize("function", CALLS)
def test_nothing_happens_without_an_identity(db: Rented, uids: dict[str, Any], function: str) -> None:
    with nothing_written(db), refused("42W01"), db.as_app(None, None) as app:
        ask(app, function, "null", **uids)
