"""Calls of the SQL interface by name: `call(app, "append_event", session_uid=uid, author="user")`."""

from typing import Any
from uuid import UUID

from psycopg import sql
from psycopg.rows import DictRow
from psycopg.types.json import Json

from tests.support.harness import Connection


def call_all(connection: Connection, function: str, **arguments: Any) -> list[DictRow]:
    """Call a function with named arguments, a dict being JSON, and return its rows."""
    query = sql.SQL("select * from {}({})").format(
        sql.Identifier("durable", function),
        sql.SQL(", ").join(sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder()) for name in arguments),
    )
    values = [Json(given) if isinstance(given, dict) else given for given in arguments.values()]
    return connection.execute(query, values).fetchall()


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
