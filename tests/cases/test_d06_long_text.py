"""D06, google/adk-python#4993, #2821 and #3351: a long error text overflowed a varchar and the turn was lost."""

import json
import secrets
from collections.abc import Callable

import pytest
from psycopg.types.json import Json

from tests.support.calls import append, call, events, open_session, start
from tests.support.harness import refused, value
from tests.support.rented import Rented, nothing_written

# 4 bytes each in UTF-8, of 262,144: no two repeat, so that no compression makes them fit an index.
FIRST = 0x10000


def incompressible(length: int) -> str:
    return "".join(chr(FIRST + secrets.randbelow(0x40000)) for _ in range(length))


def as_utf8(given: object) -> str:
    return json.dumps(given, ensure_ascii=False)


@pytest.mark.parametrize(
    ("length", "encode"),
    [(255, Json), (256, Json), (1024, Json), (1025, Json), (1025, as_utf8), (1_000_000, as_utf8)],
)
@pytest.mark.parametrize("character", ["x", "\N{CROSS MARK}", "\N{FIRE}"])
def test_an_error_text_of_any_length_is_stored_whole(
    db: Rented, length: int, encode: Callable[[object], object], character: str
) -> None:
    error = {"error_message": character * (length - 1) + "."}
    with db.as_app() as app:
        session = open_session(app)
        append(app, session, "agent", encode(error), metadata=encode(error), state_delta={"kept": True})
        (event,) = events(app, session)
        state = value(app, "select state from durable.get_state(session_uid => %s)", session)
    assert (event["content"], event["metadata"]) == (error, error)
    assert state == {"kept": True}


@pytest.mark.parametrize("length", [128, 129, 255, 256, 257, 300, 512])
def test_names_up_to_512_characters_are_stored_whole(db: Rented, length: int) -> None:
    name = "x" * (length - 1) + "\N{FIRE}"
    with db.as_app("T1", name) as app:
        session = open_session(app, name, app_name=name)
        start(app, session, name, trigger=name)
        append(app, session, name, invocation_id=name, event_id=name, attempt=1)
        (event,) = events(app, session)
        found = call(app, "list_sessions")
    assert (event["author"], event["invocation_id"], event["event_id"]) == (name, name, name)
    assert (found["user_id"], found["app_name"], found["session_id"]) == (name, name, name)


CALLS = {
    "tenant_id": "select durable.act_as(%s, 'U1')",
    "user_id": "select durable.act_as('T1', %s)",
    "app_name": "select durable.open_session(me => durable.act_as('T1', 'U1'), app_name => %s, session_id => 's1')",
    "session_id": "select durable.open_session(me => durable.act_as('T1', 'U1'), app_name => 'a', session_id => %s)",
    "author": "select durable.append_event(me => durable.act_as('T1', 'U1'), author => %s)",
    "invocation_id": "select durable.append_event("
    "me => durable.act_as('T1', 'U1'), author => 'a', invocation_id => %s)",
    "event_id": "select durable.append_event(me => durable.act_as('T1', 'U1'), author => 'a', event_id => %s)",
    "trigger": "select durable.start_run(me => durable.act_as('T1', 'U1'), invocation_id => 'i', trigger => %s)",
}


@pytest.mark.parametrize("length", [513, 100_000])
@pytest.mark.parametrize("field", CALLS)
def test_a_longer_name_is_refused_with_field_limit_and_length(db: Rented, field: str, length: int) -> None:
    with nothing_written(db), refused("22W01") as refusal, db.as_app(None, None) as app:
        app.execute(CALLS[field].encode(), ("\N{FIRE}" * length,))
    assert refusal.diag.message_primary == f"{field} has {length} characters, the limit is 512"
    assert refusal.diag.message_detail == f"field {field}, limit 512 characters, length {length}"
    assert refusal.diag.column_name == field


def test_the_invocation_of_a_run_has_the_same_limit(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
    for name, length in (("x" * 513, "513"), ("", "0"), (None, "none")):
        with nothing_written(db), refused("22W01") as refusal, db.as_app() as app:
            call(app, "start_run", session_uid=session, invocation_id=name)
        assert refusal.diag.message_detail == f"field invocation_id, limit 512 characters, length {length}"


def test_an_empty_session_id_is_refused(db: Rented) -> None:
    with nothing_written(db), refused("22W01", match="session_id is empty"), db.as_app() as app:
        open_session(app, "")


def test_four_ascii_names_of_512_characters_fit_together(db: Rented) -> None:
    tenant, user, app_name, session_id = (secrets.token_hex(256) for _ in range(4))
    with db.plain().as_app(tenant, user) as app:
        session = open_session(app, session_id, app_name=app_name)
        start(app, session, secrets.token_hex(256))
        append(
            app, session, secrets.token_hex(256), invocation_id=secrets.token_hex(256), event_id=secrets.token_hex(256)
        )
    with db.plain().as_app(tenant, user) as app:
        assert call(app, "open_session", app_name=app_name, session_id=session_id)["outcome"] == "found"


@pytest.mark.parametrize(
    ("fields", "function", "arguments"),
    [
        ("tenant_id, user_id, app_name and session_id", "open_session", ("app_name", "session_id")),
        ("tenant_id, invocation_id and author", "append_event", ("invocation_id", "author")),
        ("tenant_id and event_id", "append_event", ("event_id",)),
        ("tenant_id and invocation_id", "start_run", ("invocation_id",)),
    ],
)
def test_names_of_512_four_byte_characters_are_refused_as_too_long_together(
    db: Rented, fields: str, function: str, arguments: tuple[str, ...]
) -> None:
    tenant, user = incompressible(512), "U1"
    with db.plain().as_app(tenant, user) as app:
        session = open_session(app)
    given = {name: incompressible(512) for name in arguments}
    length = 4 * 512 * (1 + len(arguments)) + len("U1") * ("user_id" in fields)
    target: dict[str, object] = {} if function == "open_session" else {"session_uid": session}
    if function == "append_event" and "author" not in given:
        target["author"] = "a"
    with nothing_written(db), refused("22W01") as refusal, db.plain().as_app(tenant, user) as app:
        call(app, function, **target, **given)
    assert refusal.diag.message_primary == f"{fields} are too long together: {length} bytes, the limit is 2600"
    assert refusal.diag.message_detail == f"field {fields}, limit 2600 bytes of UTF-8 in all, length {length}"


def test_names_of_just_2600_incompressible_bytes_together_are_stored(db: Rented) -> None:
    # 2,400 bytes in four-byte characters and 200 of ASCII.
    tenant, user, app_name, session_id = (*(incompressible(200) for _ in range(3)), secrets.token_hex(100))
    with db.plain().as_app(tenant, user) as app:
        session = open_session(app, session_id, app_name=app_name)
        start(app, session, incompressible(450))
        append(app, session, invocation_id=incompressible(250), author=incompressible(200))
        append(app, session, event_id=incompressible(450))
    with nothing_written(db), refused("22W01", match="2601 bytes"), db.plain().as_app(tenant, user) as app:
        open_session(app, session_id + "x", app_name=app_name)
