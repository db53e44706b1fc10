"""No function of ours can be led astray by what a caller puts in its own schema, in pg_temp, or in its search_path."""

from typing import Any

import pytest

from tests.rules.world import World, unchanged
from tests.support.calls import call, call_all
from tests.support.harness import Connection, Database, value

# An operator or function for the very types that bodies use would win over pg_catalog's if it were found.
OPERATORS = [
    *((name, "text", "text", "boolean", "true") for name in ("=", "<>", "<", ">=")),
    *((name, "integer", "integer", "boolean", "true") for name in ("=", "<>", "<=", ">")),
    *((name, "uuid", "uuid", "boolean", "true") for name in ("=", "<>")),
    *((name, "jsonb", "jsonb", "boolean", "false") for name in ("=", "<>")),
    ("=", "text[]", "text[]", "boolean", "true"),
    ("@>", "text[]", "text[]", "boolean", "true"),
    ("||", "text", "text", "text", "'hijacked'"),
    ("||", "jsonb", "jsonb", "jsonb", "'{\"hijacked\": 1}'"),
    ("||", "text[]", "text[]", "text[]", "array['hijacked']"),
    ("->", "jsonb", "text", "jsonb", "null"),
    ("->>", "jsonb", "text", "text", "null"),
    ("?", "jsonb", "text", "boolean", "false"),
    ("?|", "jsonb", "text[]", "boolean", "false"),
    ("+", "integer", "integer", "integer", "0"),
]
FUNCTIONS = [
    ("current_setting", "text, boolean", "text", "'T2'"),
    ("clock_timestamp", "", "timestamptz", "'2000-01-01'"),
    ("now", "", "timestamptz", "'2000-01-01'"),
    ("btrim", "text, text", "text", "'x'"),
    ("octet_length", "text", "integer", "0"),
    ("char_length", "text", "integer", "1"),
    ("strpos", "text, text", "integer", "0"),
    ("sha256", "bytea", "bytea", "'\\x00'"),
    ("convert_to", "text, name", "bytea", "'\\x00'"),
    ("encode", "bytea, text", "text", "'00'"),
    ("isfinite", "timestamptz", "boolean", "false"),
    ("cardinality", "text[]", "integer", "0"),
    ("jsonb_typeof", "jsonb", "text", "'null'"),
    ("gen_random_uuid", "", "uuid", "'00000000-0000-0000-0000-000000000000'"),
    ("starts_with", "text, text", "boolean", "true"),
    ("format", "text, text", "text", "'select 1'"),
    ("is_identifier", "text", "boolean", "true"),
    ("current_tenant", "", "text", "'T2'"),
    ("event_hash", "text, bytea", "bytea", "'\\x00'"),
]
TABLES = (
    "sessions",
    "events",
    "runs",
    "effects",
    "effect_calls",
    "checkpoints",
    "tools",
    "app_states",
    "user_states",
    "transitions",
    "audit_log",
    "pg_class",
    "pg_trigger",
)
TYPES = ("text", "jsonb", "json", "uuid", "bytea", "counter", "identifier", "integer", "timestamptz", "record")


def lay_traps(app: Connection) -> None:
    for number, (name, left, right, result, body) in enumerate(OPERATORS):
        trap = f"trap_{number}"
        app.execute(
            f"create function playground.{trap}({left}, {right}) returns {result} language sql immutable "
            f"return ({body})::{result}".encode()
        )
        app.execute(
            f"create operator playground.{name} "
            f"(leftarg = {left}, rightarg = {right}, function = playground.{trap})".encode()
        )
    for schema in ("playground", "pg_temp"):
        for name, arguments, result, body in FUNCTIONS:
            head = f"create function {schema}.{name}({arguments}) returns {result}"
            app.execute(f"{head} language sql return ({body})::{result}".encode())
        for table in TABLES:
            app.execute(
                f"create {'temp ' if schema == 'pg_temp' else ''}table {schema}.{table} (tenant_id text)".encode()
            )
        for name in TYPES:
            app.execute(f'create type {schema}."{name}" as (hijacked pg_catalog.bool)'.encode())


@pytest.mark.parametrize("path", ["pg_temp, playground, pg_catalog", "playground, pg_temp, pg_catalog, durable", ""])
def test_a_caller_s_own_objects_are_never_used(db: Database, path: str) -> None:
    """The app may create in a schema, as everybody could in `public` until Postgres 14."""
    world = World.of(db)
    with db.superuser() as root:
        root.execute("create schema playground authorization app")
    with db.connect("app") as app:
        lay_traps(app)
        app.commit()
        app.execute(f"set search_path = {path or chr(39) * 2}".encode())
        app.commit()
        answers = a_turn(app, world)
    assert answers == EXPECTED
    with db.as_app() as honest:
        assert tuple(call(honest, "verify_session", session_uid=world.mine.session).values()) == (True, 8, None, None)


def a_turn(app: Connection, world: World) -> dict[str, Any]:
    """Call everything the app may call once, and tell what it says."""
    me, session = ("T1", "U1"), world.mine.session
    answers: dict[str, Any] = {}

    def ask(key: str, function: str, *columns: str, **arguments: Any) -> Any:
        with app.transaction():
            row = call_all(app, function, me=me, **arguments)[0]
        answers[key] = tuple(row[column] for column in columns)
        return row

    ask("open", "open_session", "outcome", app_name="support", session_id="s-1", state=None)
    ask(
        "open new",
        "open_session",
        "outcome",
        "state",
        app_name="support",
        session_id="s-3",
        state='{"x": 1, "temp:y": 2}',
    )
    run = ask("start", "start_run", "outcome", session_uid=session, invocation_id="inv-3", input='"go"')["run_uid"]
    say: dict[str, Any] = {"session_uid": session, "invocation_id": "inv-3"}
    ask("say", "append_event", "outcome", "seq", author="user", content='{"text": "hi"}', **say)
    ask("again", "append_event", "outcome", "seq", author="user", content='{"text": "hi"}', **say)
    tools = '[{"function_call": {"name": "mail"}}, {"type": "tool_use", "name": "book"}]'
    ask(
        "use",
        "append_event",
        "outcome",
        "seq",
        author="agent",
        attempt=1,
        content=tools,
        state_delta='{"user:b": 2}',
        **say,
    )
    ask("effect", "begin_effect", "outcome", run_uid=run, attempt=1, tool="pay", args='{"n": 1.0}', lease="1 hour")
    effect = ask("same", "begin_effect", "outcome", run_uid=run, attempt=1, tool="pay", args='{"n": 1}')["effect_uid"]
    ask("renew", "renew_lease", "outcome", run_uid=run, attempt=1)
    ask("save", "save_checkpoint", "outcome", run_uid=run, attempt=1, step=1, state='{"x": 1}')
    done = f'[{{"effect_uid": "{effect}", "status": "unverified"}}]'
    ask("step", "record_step", "outcome", "event_seq", run_uid=run, attempt=1, step=2, state="2", finished=done)
    ask("load", "load_checkpoint", "step", "state", run_uid=run)
    ask("give back", "interrupt_run", "outcome", run_uid=run, attempt=1)
    ask("take", "start_run", "outcome", "attempt", session_uid=session, invocation_id="inv-3")
    other = ask("go on", "begin_effect", "outcome", run_uid=run, attempt=2, step=3, tool="pay", args='{"n": 2}')
    ask("finish", "finish_effect", "outcome", effect_uid=other["effect_uid"], attempt=2, status="failed")
    seen = '{"channel": "bank", "seen": "nothing"}'
    ask("resolve", "resolve_effect", "outcome", effect_uid=effect, status="failed", evidence=seen)
    ask("effects", "list_effects", "status", "tool", run_uid=run)
    ask("retry", "retry_verdict", "allowed", "tools", run_uid=run)
    ask(
        "settle",
        "settle_run",
        "outcome",
        "tools_executed",
        run_uid=run,
        attempt=2,
        status="failed",
        result='{"text": "done"}',
    )
    ask("replay", "replay_verdict", "allowed", "reason", run_uid=run)
    ask("state", "get_state", "state", session_uid=session)
    ask("verify", "verify_session", "intact", "events_checked", session_uid=session)
    ask("read", "read_events", "seq", "tool_calls", session_uid=session, after_seq=7)
    with app.transaction():
        app.execute("select durable.act_as('T1', 'U1')")
        answers["tenant"] = value(app, "select durable.current_tenant()")
        answers["sessions"] = len(app.execute("select * from durable.list_sessions()").fetchall())
        answers["runs"] = len(app.execute("select * from durable.list_runs()").fetchall())
        answers["effects of all runs"] = len(app.execute("select * from durable.list_effects()").fetchall())
        answers["tools"] = len(app.execute("select * from durable.list_tools()").fetchall())
    ask("cancel", "cancel_run", "outcome", run_uid=world.mine.running, reason="called off")
    ask("close", "close_session", "outcome", session_uid=world.mine.closed)
    return answers


EXPECTED = {
    "open": ("found",),
    "open new": ("created", {"x": 1}),
    "start": ("started",),
    "say": ("appended", 7),
    "again": ("duplicate", 7),
    "use": ("appended", 8),
    "effect": ("execute",),
    "same": ("in_flight",),
    "renew": ("renewed",),
    "save": ("saved",),
    "step": ("saved", 8),
    "load": (2, 2),
    "give back": ("interrupted",),
    "take": ("resumed", 2),
    "go on": ("execute",),
    "finish": ("finished",),
    "resolve": ("resolved",),
    "effects": ("failed", "pay"),
    "effects of all runs": 7,
    "tools": 1,
    "cancel": ("settled",),
    "retry": (False, ["book", "mail"]),
    "settle": ("settled", ["book", "mail", "pay"]),
    "replay": (False, "tools_executed"),
    "state": ({"a": 1, "app:theme": "dark", "user:name": "Ada", "user:b": 2},),
    "verify": (True, 8),
    "read": (8, ["mail", "book"]),
    "tenant": "T1",
    "sessions": 2,
    "runs": 3,
    "close": ("already_closed",),
}


def test_a_caller_without_traps_gets_the_same_answers(db: Database) -> None:
    world = World.of(db)
    with db.connect("app") as app:
        assert a_turn(app, world) == EXPECTED


def test_the_traps_work(db: Database) -> None:
    """Otherwise the tests above would prove nothing."""
    with db.superuser() as root:
        root.execute("create schema playground authorization app")
    with db.connect("app") as app:
        lay_traps(app)
        app.execute("set local search_path = pg_temp, playground, pg_catalog")
        assert value(app, "select 'a'::pg_catalog.text || 'b'::pg_catalog.text") == "hijacked"
        assert value(app, "select current_setting('durable.tenant_id'::pg_catalog.text, true)") == "T2"
        assert value(app, "select 'a'::pg_catalog.text = 'b'::pg_catalog.text") is True
        assert app.execute("select * from sessions").fetchall() == []


def test_a_function_of_the_owner_is_not_replaced_by_one_of_the_same_name(db: Database) -> None:
    world = World.of(db)
    with unchanged(db), db.connect("app") as app:
        app.execute("create function pg_temp.is_me(text) returns boolean language sql return true")
        app.execute("set local search_path = pg_temp, pg_catalog, durable")
        assert call_all(app, "read_events", me=("T1", "U1"), session_uid=world.mine.session)[0]["seq"] == 1
