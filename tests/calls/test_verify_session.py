"""verify_session finds what was done past the guards, by whoever could: here a superuser who switches them off."""

from uuid import UUID

import pytest

from tests.support.calls import append, call, events, open_session, said, say
from tests.support.rented import Rented

NOBODY = "no such row"


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        session = open_session(app)
        for number in range(1, 6):
            append(app, session, "agent", said(f"text {number}"), metadata={"n": number}, event_id=f"e-{number}")
    return session


def tamper(db: Rented, session: UUID, *statements: str) -> None:
    with db.superuser() as root:
        for table in ("events", "sessions"):
            root.execute(f"alter table durable.{table} disable trigger user".encode())
        for statement in statements:
            assert root.execute(statement.encode(), {"session": session}).rowcount == 1, NOBODY
        for table in ("events", "sessions"):
            for row in root.execute(
                "select tgname from pg_trigger where tgrelid = %s::regclass and not tgisinternal", (f"durable.{table}",)
            ).fetchall():
                root.execute(f"alter table durable.{table} enable always trigger {row['tgname']}".encode())


def verdict(db: Rented, session: UUID) -> tuple[bool, int, int | None, str | None]:
    with db.as_app() as app:
        found = call(app, "verify_session", session_uid=session)
    return found["intact"], found["events_checked"], found["broken_seq"], found["problem"]


def test_an_untouched_session_is_intact(db: Rented, session: UUID) -> None:
    assert verdict(db, session) == (True, 5, None, None)


def test_an_empty_session_is_intact(db: Rented) -> None:
    with db.as_app() as app:
        empty = open_session(app, "empty")
    assert verdict(db, empty) == (True, 0, None, None)


EVENT = "update durable.events set {} where session_uid = %(session)s and seq = 3"
CHANGES = {
    """content = '{"parts": [{"text": "else"}]}'""": "altered content",
    "content = null": "altered content",
    "content = '{}', content_digest = durable.content_digest('{}')": "altered event",
    """metadata = '{"n": 4}'""": "altered event",
    "author = 'user'": "altered event",
    "event_id = 'other'": "altered event",
    "invocation_id = 'inv-1'": "altered event",
    "occurred_at = occurred_at + interval '1 microsecond'": "altered event",
    "recorded_at = recorded_at - interval '1 microsecond'": "altered event",
    "attempt = 1": "altered event",
    "repeatable = true": "altered event",
    "generation = 1": "altered event",
    "tool_calls = '{a}'": "altered event",
    "extra_tool_calls = '{a}'": "altered event",
    "rewind_to = 1": "altered event",
    "hash = sha256('x')": "altered event",
    "hash_version = 2": "unknown hash version",
    "author = 'user', invocation_id = 'inv-1', opening = true": "altered event",
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_altered_event_is_found(db: Rented, session: UUID, change: str) -> None:
    tamper(db, session, EVENT.format(change))
    assert verdict(db, session) == (False, 2, 3, CHANGES[change])


def test_a_deleted_event_is_found(db: Rented, session: UUID) -> None:
    tamper(db, session, "delete from durable.events where session_uid = %(session)s and seq = 3")
    assert verdict(db, session) == (False, 2, 3, "missing event")


def test_a_deleted_first_event_is_found(db: Rented, session: UUID) -> None:
    tamper(db, session, "delete from durable.events where session_uid = %(session)s and seq = 1")
    assert verdict(db, session) == (False, 0, 1, "missing event")


def test_a_deleted_event_is_found_even_when_the_later_ones_move_up(db: Rented, session: UUID) -> None:
    delete = "delete from durable.events where session_uid = %(session)s and seq = 3"
    move = "update durable.events set seq = {} where session_uid = %(session)s and seq = {}"
    tamper(db, session, delete, move.format(3, 4), move.format(4, 5))
    assert verdict(db, session) == (False, 2, 3, "altered event")


def test_a_cut_tail_is_found(db: Rented, session: UUID) -> None:
    tamper(db, session, "delete from durable.events where session_uid = %(session)s and seq = 5")
    assert verdict(db, session) == (False, 4, 5, "missing tail")


def test_a_cut_tail_is_found_even_when_the_count_is_put_right(db: Rented, session: UUID) -> None:
    tamper(
        db,
        session,
        "delete from durable.events where session_uid = %(session)s and seq = 5",
        "update durable.sessions set last_seq = 4 where session_uid = %(session)s",
    )
    assert verdict(db, session) == (False, 4, 4, "the head is not the last event")


def test_an_event_beyond_the_head_is_found(db: Rented, session: UUID) -> None:
    tamper(db, session, "update durable.sessions set last_seq = 4 where session_uid = %(session)s")
    assert verdict(db, session) == (False, 5, 5, "events beyond the head")


def test_a_moved_head_is_found(db: Rented, session: UUID) -> None:
    tamper(db, session, "update durable.sessions set head_hash = sha256('x') where session_uid = %(session)s")
    assert verdict(db, session) == (False, 5, 5, "the head is not the last event")


def test_swapped_events_are_found(db: Rented, session: UUID) -> None:
    move = "update durable.events set seq = {} where session_uid = %(session)s and seq = {}"
    tamper(db, session, move.format(99, 3), move.format(3, 4), move.format(4, 99))
    assert verdict(db, session) == (False, 2, 3, "altered event")


def test_swapped_contents_are_found(db: Rented, session: UUID) -> None:
    change = "update durable.events set content = '{}', content_digest = durable.content_digest('{}') where "
    where = "session_uid = %(session)s and seq = {}"
    tamper(db, session, (change + where).format("{}", "{}", 2), (change + where).format("[]", "[]", 4))
    assert verdict(db, session) == (False, 1, 2, "altered event")


def test_an_event_moved_to_another_session_is_found_in_both(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        other = open_session(app, "other")
    tamper(
        db, session, f"update durable.events set session_uid = '{other}' where session_uid = %(session)s and seq = 1"
    )
    assert verdict(db, session) == (False, 0, 1, "missing event")
    assert verdict(db, other) == (False, 0, 1, "altered event")


@pytest.mark.parametrize(
    "setting",
    [
        "TimeZone = 'Asia/Kathmandu'",
        "DateStyle = 'German, DMY'",
        "IntervalStyle = 'iso_8601'",
        "extra_float_digits = -15",
        "bytea_output = 'escape'",
        "standard_conforming_strings = off",
        "transform_null_equals = on",
        "lc_numeric = 'C'",
        "search_path = pg_temp",
        "xmloption = 'content'",
    ],
)
def test_no_setting_of_a_session_changes_a_hash(db: Rented, session: UUID, setting: str) -> None:
    with db.as_app() as app:
        app.execute(f"set {setting}".encode())
        assert call(app, "verify_session", session_uid=session)["intact"]
        say(app, session, "appended under this setting", metadata={"n": 1.5}, occurred_at="2024-02-29 12:00+00")
    assert verdict(db, session) == (True, 6, None, None)


def test_an_operator_and_an_auditor_can_verify_as_well(db: Rented, session: UUID) -> None:
    for block in (db.as_operator(), db.as_auditor()):
        with block as reader:
            assert call(reader, "verify_session", session_uid=session)["intact"]


def test_the_chain_can_be_recomputed_from_its_description_alone(db: Rented, session: UUID) -> None:
    """What event_hash documents as canonical form 1, without event_hash."""
    query = """
        select sha256(convert_to(jsonb_build_array(
            'durable_pg event 1', tenant_id, session_uid::text, user_id, seq, event_id, invocation_id, author,
            encode(sha256(convert_to(coalesce(content::text, ''), 'UTF8')), 'hex'),
            encode(sha256(convert_to(metadata::text, 'UTF8')), 'hex'),
            (extract(epoch from occurred_at) * 1000000)::bigint, (extract(epoch from recorded_at) * 1000000)::bigint,
            attempt, opening, repeatable, generation, to_jsonb(tool_calls), to_jsonb(extra_tool_calls), rewind_to,
            encode(lag(hash) over (order by seq), 'hex')
        )::text, 'UTF8')) as hash
        from durable.events where session_uid = %s order by seq
    """
    with db.as_app() as app:
        computed = [row["hash"] for row in app.execute(query, (session,)).fetchall()]
        assert computed == [event["hash"] for event in events(app, session)]
