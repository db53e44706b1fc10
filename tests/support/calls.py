"""Calls of the SQL interface by name: `call(app, "append_event", session_uid=uid, author="user")`."""

import json
import time
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import sql
from psycopg.rows import DictRow
from psycopg.types.json import Json

from tests.support.harness import Connection, Database, value
from tests.support.rented import Rented, nothing_written

ARGS = {"order": 7, "cents": 500}
EVIDENCE = {"channel": "provider's dashboard", "seen": "refund re_7 of 5.00, succeeded"}
SHORT = "200 milliseconds"


def call_all(connection: Connection, function: str, **arguments: Any) -> list[DictRow]:
    """Call a function with named arguments and return its rows. A dict is JSON; a `me` of tenant and user is act_as."""
    given = {name: Json(value) if isinstance(value, dict) else value for name, value in arguments.items()}
    me = given.get("me")
    written = [
        sql.SQL("me => durable.act_as(%(tenant_of_me)s, %(user_of_me)s)")
        if name == "me" and isinstance(me, tuple)
        else sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name))
        for name in given
    ]
    if isinstance(me, tuple):
        del given["me"]
        given["tenant_of_me"], given["user_of_me"] = me
    query = sql.SQL("select * from {}({})").format(sql.Identifier("durable", function), sql.SQL(", ").join(written))
    return connection.execute(query, given).fetchall()


def call(connection: Connection, function: str, **arguments: Any) -> DictRow:
    """Call a function that returns one row."""
    (row,) = call_all(connection, function, **arguments)
    return row


def open_session(connection: Connection, name: str = "s1", **arguments: Any) -> UUID:
    """Open a session of the app `support`."""
    found = call(connection, "open_session", **{"app_name": "support", "session_id": name, **arguments})["session_uid"]
    assert isinstance(found, UUID)
    return found


def append(connection: Connection, session: UUID, author: str = "agent", content: Any = None, **more: Any) -> DictRow:
    """Append an event with this content, as JSON in whatever form."""
    return call(connection, "append_event", session_uid=session, author=author, content=content, **more)


def say(
    connection: Connection, session: UUID, words: str = "hello", invocation: str | None = "inv-1", **more: Any
) -> DictRow:
    """Append a user's text."""
    return append(connection, session, "user", said(words), invocation_id=invocation, **more)


def use_tool(
    connection: Connection, session: UUID, tool: str, invocation: str | None = "inv-1", **more: Any
) -> DictRow:
    """Append the model's call of a tool."""
    return append(connection, session, "agent", tool_call(tool), invocation_id=invocation, **more)


def start(connection: Connection, session: UUID, invocation: str = "inv-1", **more: Any) -> UUID:
    """Start a run that has not been started yet."""
    found = call(connection, "start_run", session_uid=session, invocation_id=invocation, **more)
    assert found["outcome"] == "started"
    assert isinstance(found["run_uid"], UUID)
    return found["run_uid"]


def settle(connection: Connection, run: UUID, **more: Any) -> DictRow:
    """Settle a run, as its first attempt and as succeeded unless more is said."""
    return call(connection, "settle_run", **{"run_uid": run, "attempt": 1, "status": "succeeded", **more})


def events(connection: Connection, session: UUID, **more: Any) -> list[DictRow]:
    """Read a session's events."""
    return call_all(connection, "read_events", session_uid=session, **more)


def texts(connection: Connection, session: UUID) -> list[str]:
    """Read what a session's events say, those of one text part each."""
    return [event["content"]["parts"][0]["text"] for event in events(connection, session)]


def said(words: str) -> dict[str, Any]:
    """Return an ADK message of one text part."""
    return {"parts": [{"text": words}]}


def tool_call(tool: str) -> dict[str, Any]:
    """Return an ADK message that calls a tool."""
    return {"role": "model", "parts": [{"function_call": {"name": tool, "args": {}}}]}


def tool_response(tool: str) -> dict[str, Any]:
    """Return an ADK message with a tool's answer."""
    return {"role": "user", "parts": [{"function_response": {"id": "c1", "name": tool, "response": {"ok": True}}}]}


def rewind_before(invocation: str) -> dict[str, Any]:
    """Return the metadata of an ADK event that rewinds a session."""
    return {"actions": {"rewind_before_invocation_id": invocation}}


def begin(connection: Connection, run: UUID, attempt: int | None = 1, **more: Any) -> DictRow:
    """Begin a refund, in step 0 and without an intent unless more is said."""
    return call(
        connection, "begin_effect", **{"run_uid": run, "attempt": attempt, "tool": "refund", "args": ARGS, **more}
    )


def finish(connection: Connection, effect: UUID, status: str | None = "succeeded", **more: Any) -> DictRow:
    """Finish an effect as the first attempt unless more is said."""
    return call(connection, "finish_effect", **{"effect_uid": effect, "attempt": 1, "status": status, **more})


def resolve(connection: Connection, effect: UUID, status: str | None = "succeeded", **more: Any) -> DictRow:
    """Resolve an effect on the word of somebody who looked."""
    return call(connection, "resolve_effect", **{"effect_uid": effect, "status": status, "evidence": EVIDENCE, **more})


def refund(connection: Connection, run: UUID, status: str = "succeeded", attempt: int = 1, **more: Any) -> UUID:
    """Begin a refund and finish it at once; return its effect_uid."""
    begun = begin(connection, run, attempt, **more)
    assert begun["outcome"] == "execute"
    found = begun["effect_uid"]
    assert isinstance(found, UUID)
    finish(connection, found, status, attempt=attempt)
    return found


def effects(connection: Connection, **more: Any) -> list[DictRow]:
    """List the effects that the caller sees."""
    return call_all(connection, "list_effects", **more)


def interrupt(connection: Connection, run: UUID, attempt: int | None = 1, **more: Any) -> DictRow:
    """Give a run back."""
    return call(connection, "interrupt_run", run_uid=run, attempt=attempt, **more)


def ask_for(connection: Connection, session: UUID, invocation: str = "inv-1", **more: Any) -> DictRow:
    """Start or resume the run of an invocation, or learn where it stands."""
    return call(connection, "start_run", session_uid=session, invocation_id=invocation, **more)


def take_over(connection: Connection, session: UUID, run: UUID, attempt: int = 1) -> int:
    """Let the attempt give the run back and the next one take it; return the next."""
    assert interrupt(connection, run, attempt)["outcome"] == "interrupted"
    taken = ask_for(connection, session)
    assert (taken["run_uid"], taken["outcome"]) == (run, "resumed")
    assert isinstance(taken["attempt"], int)
    return taken["attempt"]


def save(connection: Connection, run: UUID, step: int | None = 1, attempt: int | None = 1, **more: Any) -> DictRow:
    """Save a checkpoint."""
    state = {"run_uid": run, "attempt": attempt, "step": step, "state": {"step": step}}
    return call(connection, "save_checkpoint", **{**state, **more})


def record(connection: Connection, run: UUID, step: int | None = 1, attempt: int | None = 1, **more: Any) -> DictRow:
    """Record a step; lists are JSON, a UUID in them its text."""
    given = {name: json.dumps(items, default=str) if isinstance(items, list) else items for name, items in more.items()}
    return call(connection, "record_step", **{"run_uid": run, "attempt": attempt, "step": step, **given})


def wait_until_over(db: Database, lease_expires_at: datetime) -> None:
    """Return as soon as the database's clock is past the end of a lease."""
    with db.server.connect(db.name) as root:
        while not value(root, "select clock_timestamp() > %s", lease_expires_at):
            time.sleep(0.01)


def expire(db: Rented, session: UUID, **more: Any) -> UUID:
    """Start a run and let its lease run out."""
    with db.as_app() as app:
        started = ask_for(app, session, **{"worker": "w-0", "lease": SHORT, **more})
    assert started["outcome"] == "started"
    wait_until_over(db, started["lease_expires_at"])
    found = started["run_uid"]
    assert isinstance(found, UUID)
    return found


def wait_for_a_decision(db: Rented, run: UUID) -> None:
    """Put the run where an approval will put it, as the back role that owns the functions."""
    with db.as_engine() as engine:
        engine.execute("update durable.runs set status = 'awaiting', lease_holder = null where run_uid = %s", (run,))


def renew(connection: Any, run: UUID, attempt: int | None = 1, **more: Any) -> Any:
    return call(connection, "renew_lease", run_uid=run, attempt=attempt, **more)


def dead(db: Rented, name: str = "s1", user: str = "U1", tenant: str = "T1", **effect: Any) -> UUID:
    """Start a run, begin an effect if one is described, and let the lease run out."""
    with db.as_app(tenant, user) as app:
        started = ask_for(app, open_session(app, name), lease=SHORT)
        over: datetime = started["lease_expires_at"]
        if effect:
            over = max(over, begin(app, started["run_uid"], **effect)["lease_expires_at"])
    wait_until_over(db, over)
    found = started["run_uid"]
    assert isinstance(found, UUID)
    return found


def declare(operator: Connection, tools: Any, app_name: str | None = "support") -> dict[str, str]:
    return {row["tool"]: row["outcome"] for row in call_all(operator, "declare_tools", app_name=app_name, tools=tools)}


def set_tool(operator: Connection, tool: str = "lookup", replay_class: Any = "read_only", **more: Any) -> Any:
    given = {"app_name": "support", "tool": tool, "replay_class": replay_class, "reason": "it only reads", **more}
    return call(operator, "set_tool", **given)


def state(app: Connection, session: UUID | None = None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = call(app, "get_state", session_uid=session, **more)["state"]
    return found


def load(connection: Any, run: UUID) -> Any:
    """Return the newest checkpoint of a run, None when there is none."""
    found = call_all(connection, "load_checkpoint", run_uid=run)
    assert len(found) <= 1
    return found[0] if found else None


def record_tools(db: Rented, session: UUID, run: UUID, tools: list[str] | None, settled: dict[str, Any] | None) -> None:
    """Record an answer and these calls, or nothing; then settle, or don't."""
    with db.as_app() as app:
        if tools is not None:
            append(app, session, "agent", said("thinking"), invocation_id="inv-1", attempt=1)
            for tool in tools:
                use_tool(app, session, tool, attempt=1)
        if settled is not None:
            settle(app, run, **settled)


def verdict(db: Rented, kind: str, run: UUID) -> tuple[bool, str, list[str]]:
    with nothing_written(db), db.as_app() as app:
        found = call(app, f"{kind}_verdict", run_uid=run)
    return found["allowed"], found["reason"], found["tools"]


def cancel_open_runs(db: Database) -> None:
    """Leave no open run behind in a database that tests share: the maintainer sees those of all."""
    with db.superuser() as root:
        open_runs = "select tenant_id, user_id, run_uid from durable.runs where settled_at is null"
        found = root.execute(open_runs).fetchall()
    for row in found:
        with db.connect("app") as app:
            app.execute("select durable.act_as(%s, %s)", (row["tenant_id"], row["user_id"]))
            call(app, "cancel_run", run_uid=row["run_uid"], reason="the test is over")
