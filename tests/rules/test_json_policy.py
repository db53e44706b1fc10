"""The JSON policy: what jsonb can't hold comes back as it was sent, or is refused and nothing is written."""

import pytest

from tests.rules.rows import insert, session_row, user_state_row
from tests.rules.world import World, unchanged
from tests.support.calls import call
from tests.support.harness import Database, refused, value

UNFIT_VALUES = [
    ("json_object_is_an_object", "update durable.sessions set state = '[]'"),
    ("json_object_is_an_object", "update durable.app_states set state = 'null'"),
    ("json_object_is_an_object", "update durable.user_states set state = '1'"),
    ("counter_is_not_negative", "update durable.sessions set revision = -1"),
    ("counter_is_not_negative", "update durable.app_states set revision = -1"),
    ("digest_has_32_bytes", "update durable.sessions set head_hash = 'abc'"),
    ("json_object_is_an_object", "update durable.effects set evidence = '[]'"),
    ("counter_is_not_negative", "update durable.effects set attempt = -1"),
    ("counter_is_not_negative", "update durable.runs set max_attempts = -1"),
]
HALF_FACTS = [
    ("sessions_head_belongs_to_events", "update durable.sessions set last_seq = 0 where session_id = 's-1'"),
    ("sessions_head_belongs_to_events", "update durable.sessions set head_hash = null where session_id = 's-1'"),
    ("sessions_only_closed_has_reason", "update durable.sessions set close_reason = 'x' where session_id = 's-1'"),
]


@pytest.mark.parametrize(
    "text", ["a\\u0000b", "\\ud800", "\\udc00\\ud800", "\\ufffe0000", "\\\\u0000", "\\ud83d\\ude00"]
)
def test_what_jsonb_can_not_hold_comes_back(db: Database, text: str) -> None:
    mine = World.of(db).mine
    sent = f'{{"text": "{text}"}}'
    with db.as_app() as app:
        seq = call(app, "append_event", session_uid=mine.session, author="agent", content=sent)["seq"]
        read = "select content::text from durable.read_events(session_uid => %s, after_seq => %s)"
        back = value(app, read, mine.session, seq - 1)
        # Python's json keeps lone surrogates apart, as the wire does.
        assert value(app, "select durable.escape_json(%s, '') = durable.escape_json(%s, '')", sent, back)


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ('{"parts": [{"n": 1e200000}]}', "content.parts[0].n"),
        ('{"parts": [{"text": "ok"}, {"a": {"b": -1e131073}}]}', "content.parts[1].a.b"),
        ('{"kept": "\\u0000", "lone": ["\\ud800"], "n": 1e200000}', "content.n"),
        ("[" * 40000 + "]" * 40000, "content"),
    ],
    ids=["exponent", "deeper", "after what can be kept", "depth"],
)
def test_what_can_not_be_kept_is_refused_by_its_path(db: Database, content: str, path: str) -> None:
    mine = World.of(db).mine
    with unchanged(db), db.connect("app") as app:
        try:
            with refused("22W02") as refusal, app.transaction():
                say = {"author": "agent", "content": content, "session_uid": mine.session}
                call(app, "append_event", me=("T1", "U1"), **say)
        except AssertionError as error:
            # The server may refuse the depth while it reads the argument, before any function of ours.
            if path != "content" or "54001" not in str(error):
                raise
        else:
            assert str(refusal.diag.message_primary).startswith(f"{path} ")


@pytest.mark.parametrize("argument", ["metadata", "state_delta"])
def test_an_object_is_an_object(db: Database, argument: str) -> None:
    mine = World.of(db).mine
    with unchanged(db):
        for text in ("[]", "1", '"x"', "null"):
            with refused("22W03"), db.as_app() as app:
                say = {"author": "agent", "content": "{}", "session_uid": mine.session}
                call(app, "append_event", **say, **{argument: text})


@pytest.mark.parametrize(("domain", "statement"), UNFIT_VALUES)
def test_a_column_refuses_to_the_engine_what_its_domain_is_not(db: Database, domain: str, statement: str) -> None:
    World.of(db)
    with unchanged(db), refused("23514", constraint=domain), db.as_engine() as engine:
        engine.execute(statement.encode())


@pytest.mark.parametrize("name", ["", " ", " x", "x\u3000", "x" * 513, "\ufeffx"])
def test_a_column_refuses_to_the_engine_an_unfit_name(db: Database, name: str) -> None:
    mine = World.of(db).mine
    with unchanged(db):
        with refused("23514", constraint="identifier_is_1_to_512_unpadded"), db.as_engine() as engine:
            insert(engine, "sessions", session_row(mine, session_id=name))
        with refused("23514", constraint="identifier_is_1_to_512_unpadded"), db.as_engine() as engine:
            insert(engine, "user_states", user_state_row(mine, app_name=name))


@pytest.mark.parametrize(("constraint", "statement"), HALF_FACTS)
def test_a_session_refuses_to_the_engine_half_a_fact(db: Database, constraint: str, statement: str) -> None:
    World.of(db)
    with unchanged(db), refused("23514", constraint=constraint), db.as_engine() as engine:
        engine.execute(statement.encode())
