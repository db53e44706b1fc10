"""Rule chain: an altered, missing or added event and a cut tail show, whatever settings a session has."""

from typing import Any

import pytest

from tests.rules.world import World, unchanged
from tests.support.calls import call
from tests.support.harness import Connection, Database, value

SETTINGS = {
    "TimeZone": "Asia/Kathmandu",
    "DateStyle": "German, DMY",
    "IntervalStyle": "sql_standard",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "array_nulls": "off",
    "quote_all_identifiers": "on",
    "xmloption": "document",
    "lc_numeric": "C",
    "search_path": "pg_temp, public",
    "plpgsql.extra_errors": "all",
    "enable_indexscan": "off",
    "enable_seqscan": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit_above_cost": "0",
}
# What somebody beyond every guard does to the session, and where the chain then breaks.
FORGERIES = {
    "content": ("update durable.events set content = '{\"parts\": []}' where seq = 2", 2, "altered content"),
    "content and its digest": (
        "update durable.events set content = '1', content_digest = durable.content_digest('1') where seq = 2",
        2,
        "altered event",
    ),
    "metadata": ("update durable.events set metadata = '{\"trace\": 2}' where seq = 6", 6, "altered event"),
    "first event gone": ("delete from durable.events where seq = 1", 1, "missing event"),
    "event gone": ("delete from durable.events where seq = 4", 4, "missing event"),
    "tail cut": ("delete from durable.events where seq = 6", 6, "missing tail"),
    "all gone": ("delete from durable.events", 1, "missing tail"),
    "event closed up": (
        "delete from durable.events where seq = 4; update durable.events set seq = seq - 1 where seq > 4",
        4,
        "altered event",
    ),
    "order": (
        """
        update durable.events set seq = 100 where seq = 2;
        update durable.events set seq = 2 where seq = 3;
        update durable.events set seq = 3 where seq = 100
        """,
        2,
        "altered event",
    ),
    "event added": (
        """
        create temp table added as select * from durable.events where seq = 6;
        update added set seq = 7, event_id = 'added';
        insert into durable.events select * from added
        """,
        7,
        "altered event",
    ),
    "head moved": ("update durable.sessions set head_hash = sha256('x')", 6, "the head is not the last event"),
    "head set back": (
        "update durable.sessions as s set last_seq = 5, head_hash = e.hash from durable.events as e where e.seq = 5",
        6,
        "events beyond the head",
    ),
    "head ahead": ("update durable.sessions set last_seq = 7", 7, "missing tail"),
    "hash": ("update durable.events set hash = sha256('x') where seq = 6", 6, "altered event"),
    "version": ("update durable.events set hash_version = 2 where seq = 3", 3, "unknown hash version"),
}
ALTERED = {
    "event_id": "'another'",
    "invocation_id": "'another'",
    "author": "'agent-2'",
    "occurred_at": "occurred_at + interval '1 microsecond'",
    "recorded_at": "recorded_at - interval '1 microsecond'",
    "user_id": "'U9'",
    "attempt": "coalesce(attempt, 0) + 1",
    "opening": "not opening",
    "repeatable": "not repeatable",
    "generation": "generation + 1",
    "tool_calls": "tool_calls || text 'mail'",
    "extra_tool_calls": "extra_tool_calls || text 'mail'",
    "rewind_to": "1",
    "content": "'{}'",
    "metadata": "'{\"x\": 1}'",
    "content_digest": "sha256('x')",
    "hash": "sha256('x')",
    "hash_version": "2",
    "tenant_id": "'T9'",
    "session_uid": "'00000000-0000-7000-8000-000000000000'",
    "seq": "seq + 100",
}


def break_in(root: Connection) -> None:
    """Lift every guard of the two tables, as only DDL can."""
    root.execute("set local session_replication_role = replica")
    for table in ("events", "sessions"):
        root.execute(f"alter table durable.{table} disable trigger user".encode())
    root.execute("alter table durable.events drop constraint events_opening_is_the_users")
    # Other sessions aside, so that a forgery may name events by their place alone.
    root.execute("delete from durable.events where (tenant_id, user_id) <> ('T1', 'U1')")
    root.execute("delete from durable.sessions where (tenant_id, user_id, session_id) <> ('T1', 'U1', 's-1')")


def verdict(connection: Connection, session: Any) -> tuple[Any, ...]:
    return tuple(call(connection, "verify_session", session_uid=session).values())


@pytest.mark.parametrize("role", ["app", "operator", "auditor"])
def test_an_untouched_session_is_intact(db: Database, role: str) -> None:
    mine = World.of(db).mine
    block = {"app": db.as_app(), "operator": db.as_operator(), "auditor": db.as_auditor()}[role]
    with block as connection:
        assert verdict(connection, mine.session) == (True, 6, None, None)
        assert verdict(connection, mine.closed) == (True, 0, None, None)


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_shows(db: Database, forgery: str) -> None:
    mine = World.of(db).mine
    statement, broken, problem = FORGERIES[forgery]
    with db.superuser() as root:
        break_in(root)
        root.execute(statement.encode())
    with db.as_app() as app:
        intact, _, broken_seq, said = verdict(app, mine.session)
    assert (intact, broken_seq, said) == (False, broken, problem)


@pytest.mark.parametrize("column", ALTERED)
@pytest.mark.parametrize("seq", [2, 6])
def test_an_altered_column_shows(db: Database, column: str, seq: int) -> None:
    mine = World.of(db).mine
    with db.superuser() as root:
        break_in(root)
        root.execute(f"update durable.events set {column} = {ALTERED[column]} where seq = {seq}".encode())
    with db.as_auditor() as auditor:
        intact, _, broken_seq, _ = verdict(auditor, mine.session)
    assert (intact, broken_seq) == (False, seq)


def test_every_column_is_altered_in_the_test_above(db: Database) -> None:
    with db.superuser() as root:
        found = root.execute(
            "select attname from pg_attribute where attrelid = 'durable.events'::regclass and attnum > 0"
        ).fetchall()
    assert {row["attname"] for row in found} == set(ALTERED)


@pytest.mark.parametrize("time", ["infinity", "-infinity"])
def test_an_endless_time_shows(db: Database, time: str) -> None:
    mine = World.of(db).mine
    with db.superuser() as root:
        break_in(root)
        root.execute("update durable.events set occurred_at = %s where seq = 2", (time,))
    with db.as_app() as app:
        assert verdict(app, mine.session)[:3] == (False, 1, 2)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_of_the_session_changes_no_hash(db: Database, name: str) -> None:
    mine = World.of(db).mine
    say: dict[str, Any] = {
        "session_uid": mine.session,
        "author": "agent",
        "content": '{"n": 1.10, "big": 123456789012345678901234567890.5, "s": "a\\\\b\'c\\n", "null": null}',
        "metadata": '{"t": 0.1}',
        "occurred_at": "2026-03-29 01:30:00.123456+00",
        "invocation_id": "inv-9",
        "extra_tool_calls": ["NULL", "a,b", '"', "\\"],
    }
    recompute = """
        select array_agg(encode(durable.event_hash(e, p.hash), 'hex') order by e.seq)
        from durable.events as e left join durable.events as p
            on (p.tenant_id, p.session_uid, p.seq) = (e.tenant_id, e.session_uid, e.seq - 1)
        where e.session_uid = %s
    """
    with db.connect("app") as odd:
        odd.execute("select set_config(%s, %s, false)", (name, SETTINGS[name]))
        odd.commit()
        with odd.transaction():
            assert call(odd, "append_event", me=("T1", "U1"), **say)["seq"] == 7
        with odd.transaction():
            odd.execute("select durable.act_as('T1', 'U1')")
            assert verdict(odd, mine.session) == (True, 7, None, None)
            computed = value(odd, recompute, mine.session)
            stored = value(
                odd,
                "select array_agg(encode(hash, 'hex') order by seq) from durable.events where session_uid = %s",
                mine.session,
            )
    with unchanged(db), db.as_app() as app:
        assert verdict(app, mine.session) == (True, 7, None, None)
        assert value(app, recompute, mine.session) == computed == stored
        kept = "select extra_tool_calls as tools, content ->> 's' as said, extract(epoch from occurred_at)::text as at"
        row = app.execute(f"{kept} from durable.events where seq = 7".encode()).fetchone()
    assert row == {"tools": say["extra_tool_calls"], "said": "a\\b'c\n", "at": "1774747800.123456"}


def test_all_these_settings_together_change_no_hash(db: Database) -> None:
    mine = World.of(db).mine
    with db.connect("app") as odd:
        for name, setting in SETTINGS.items():
            odd.execute("select set_config(%s, %s, false)", (name, setting))
        odd.commit()
        say: dict[str, Any] = {"author": "agent", "content": '{"n": 1.10}', "invocation_id": "inv-9"}
        call(odd, "append_event", me=("T1", "U1"), session_uid=mine.session, **say)
        assert verdict(odd, mine.session) == (True, 7, None, None)
    with db.as_app() as app:
        assert verdict(app, mine.session) == (True, 7, None, None)
