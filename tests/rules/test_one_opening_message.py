"""Rule one-opening-message: an invocation has one opening user message, whoever says it again and however."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.rules.rows import event_row, insert
from tests.rules.world import Caller, Home, World, unchanged
from tests.support.calls import call
from tests.support.harness import Connection, Database, connections, refused, rows, wait_until_blocked

SAID = '{"parts": [{"text": "refund order 7"}]}'
TABLE_ATTACKS: list[tuple[str, str, dict[str, Any]]] = [
    ("events_one_opening_message", "23505", {"invocation_id": "inv-2"}),
    ("events_event_id_once", "23505", {"event_id": "loose"}),
    ("events_pkey", "23505", {"seq": 6}),
    ("events_opening_is_the_users", "23514", {"author": "agent"}),
    ("events_opening_is_the_users", "23514", {"invocation_id": None}),
    ("events_opening_is_the_users", "23514", {"repeatable": True}),
    ("events_seq_from_1_and_rewinds_go_back", "23514", {"seq": 0}),
    ("events_seq_from_1_and_rewinds_go_back", "23514", {"rewind_to": 7}),
    ("events_seq_from_1_and_rewinds_go_back", "23514", {"rewind_to": 0}),
    ("events_session_is_the_users", "23503", {"session_uid": "00000000-0000-0000-0000-000000000000"}),
]


def append(db: Database, home: Home, content: str, **arguments: Any) -> dict[str, Any]:
    with db.connect("app", autocommit=True) as app:
        given = {"author": "user", "invocation_id": "inv-2", **arguments}
        return Caller(app, home.tenant, home.user)("append_event", session_uid=home.session, content=content, **given)


def opening_messages(db: Database, home: Home) -> list[tuple[str, int, int]]:
    return sorted(
        (row["invocation_id"], row["generation"], row["seq"])
        for row in rows(db, "events")
        if row["opening"] and row["session_uid"] == home.session
    )


def test_the_same_message_again_is_a_duplicate(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db):
        for spelled in (SAID, '{"parts":[{"text":"refund order 7"}]}', '{"parts": [{"text": "\\u0072efund order 7"}]}'):
            answer = append(db, mine, spelled, state_delta='{"a": 2}', metadata='{"retry": 3}')
            assert (answer["seq"], answer["outcome"]) == (3, "duplicate")


def test_a_settled_invocation_is_told_the_duplicate_too(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db):
        assert append(db, mine, SAID, invocation_id="inv-1")["outcome"] == "duplicate"


@pytest.mark.parametrize("arguments", [{}, {"event_id": "mine-1"}, {"metadata": '{"x": 1}'}, {"attempt": 1}])
def test_another_message_is_refused(db: Database, arguments: dict[str, Any]) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused("23W06", constraint="events_one_opening_message"):
        append(db, mine, '{"parts": [{"text": "refund order 8"}]}', **arguments)


def test_an_event_id_names_one_event(db: Database) -> None:
    mine = World.of(db).mine
    with unchanged(db):
        for changes in ({"content": "{}"}, {"author": "agent"}, {"invocation_id": "inv-2"}):
            arguments: dict[str, Any] = {
                "content": '{"text": "typing"}',
                "event_id": "loose",
                "invocation_id": None,
                **changes,
            }
            with refused("23W05", constraint="events_event_id_once"):
                append(db, mine, **arguments)


def test_texts_without_an_invocation_are_never_deduplicated(db: Database) -> None:
    mine = World.of(db).mine
    seqs = [append(db, mine, SAID, invocation_id=invocation)["seq"] for invocation in (None, "", None)]
    assert seqs == [7, 8, 9]
    assert opening_messages(db, mine) == [("inv-1", 0, 1), ("inv-2", 0, 3)]


def test_repeatable_texts_open_nothing(db: Database) -> None:
    mine = World.of(db).mine
    assert [append(db, mine, SAID, repeatable=True)["outcome"] for _ in range(2)] == ["appended", "appended"]
    assert opening_messages(db, mine) == [("inv-1", 0, 1), ("inv-2", 0, 3)]


def test_a_tool_s_answer_by_the_user_opens_nothing(db: Database) -> None:
    mine = World.of(db).mine
    answer = '{"parts": [{"function_response": {"name": "refund", "response": {}}}]}'
    assert append(db, mine, answer)["outcome"] == "appended"
    assert opening_messages(db, mine) == [("inv-1", 0, 1), ("inv-2", 0, 3)]


def test_a_rewound_turn_is_said_again_once(db: Database) -> None:
    mine = World.of(db).mine
    rewind = '{"actions": {"rewind_before_invocation_id": "inv-2"}}'
    with db.as_app() as app:
        call(app, "settle_run", run_uid=mine.running, attempt=1, status="succeeded")
    append(db, mine, "{}", author="agent", invocation_id="inv-3", metadata=rewind)
    assert append(db, mine, '{"text": "refund order 8"}')["outcome"] == "appended"
    assert append(db, mine, '{"text": "refund order 8"}')["outcome"] == "duplicate"
    with refused("23W06"):
        append(db, mine, SAID)
    assert opening_messages(db, mine) == [("inv-1", 0, 1), ("inv-2", 0, 3), ("inv-2", 1, 8)]


def test_two_callers_at_once_record_one_message(db: Database) -> None:
    mine = World.of(db).mine
    say = """
        select outcome from durable.append_event(
            me => durable.act_as('T1', 'U1'), session_uid => %s, author => 'user', content => %s, invocation_id => 'new'
        )
    """

    def speak(app: Connection, content: str) -> str:
        (row,) = app.execute(say, (mine.session, content)).fetchall()
        app.commit()
        return str(row["outcome"])

    with connections(db, 3) as (first, second, third), ThreadPoolExecutor() as threads:
        first.execute(say, (mine.session, SAID))
        same = threads.submit(speak, second, SAID)
        other = threads.submit(speak, third, '{"text": "something else"}')
        wait_until_blocked(db, second)
        wait_until_blocked(db, third)
        first.commit()
        assert same.result(timeout=10) == "duplicate"
        with refused("23W06"):
            other.result(timeout=10)
    assert [opened[0] for opened in opening_messages(db, mine)] == ["inv-1", "inv-2", "new"]


@pytest.mark.parametrize(("constraint", "sqlstate", "changes"), TABLE_ATTACKS)
def test_the_table_refuses_it_to_the_engine(
    db: Database, constraint: str, sqlstate: str, changes: dict[str, Any]
) -> None:
    mine = World.of(db).mine
    with unchanged(db), refused(sqlstate, constraint=constraint), db.as_engine() as engine:
        insert(engine, "events", event_row(mine, **changes))


def test_the_table_accepts_an_event_that_breaks_none_of_it(db: Database) -> None:
    mine = World.of(db).mine
    with db.as_engine() as engine:
        assert insert(engine, "events", event_row(mine)) == 1
