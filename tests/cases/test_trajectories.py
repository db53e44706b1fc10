"""Two hundred real agent runs, each submitted three times by eight processes at once, are recorded once.

The file is not part of the project; DURABLE_PG_TRAJECTORIES names it, or it lies beside the checkout.
"""

import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from durable_pg.demo.trajectories import Submitted, agent_runs, count, load, look, submit
from tests.support.harness import Database, one, value

FILE = Path(
    os.environ.get("DURABLE_PG_TRAJECTORIES")
    or Path(__file__).parents[3] / "shared" / "data" / "tau_airline_gpt4o.json.gz"
)
pytestmark = pytest.mark.skipif(not FILE.exists(), reason=f"no trajectories at {FILE.name}")

# What the file holds, counted apart from the code that records it (test_the_file_holds_what_is_pinned).
RUNS = 200
EVENTS = 5_308 - 200  # without the system messages
USER_TURNS = 1_490
TOOL_CALLS = {
    "get_reservation_details": 377,
    "search_direct_flight": 141,
    "get_user_details": 120,
    "update_reservation_flights": 104,
    "calculate": 96,
    "think": 92,
    "cancel_reservation": 69,
    "book_reservation": 53,
    "transfer_to_human_agents": 48,
    "search_onestop_flight": 38,
    "update_reservation_baggages": 14,
    "send_certificate": 8,
    "list_all_airports": 2,
    "update_reservation_passengers": 2,
}


def test_the_file_holds_what_is_pinned() -> None:
    """Counted on the text of the file, not through its structure."""
    text = json.dumps(json.loads(gzip.decompress(FILE.read_bytes())))
    roles = Counter(re.findall(r'(?<!\\)"role": "(\w+)"', text))
    assert len(re.findall(r'(?<!\\)"task_id": \d', text)) == RUNS
    assert (sum(roles.values()) - roles["system"], roles["user"]) == (EVENTS, USER_TURNS)
    # "function": {"arguments": "...", "name": "x"}, "id": ...: the only "name" that an id follows.
    called = Counter(re.findall(r'(?<!\\)"name": "(\w+)"\}, "id": ', text))
    assert called == TOOL_CALLS
    assert called.total() == 1_164


@pytest.fixture(scope="module")
def submitted(server: object, migrated_template: object) -> Iterator[tuple[Database, Submitted]]:
    """One database for the whole file: the submission takes a while, and each test asks another question of it."""
    database = Database(server, migrated_template.template_dbname).clone()  # type: ignore[arg-type, attr-defined]
    told: list[int] = []
    report = submit(database.url("app"), load(FILE), workers=8, submissions=3, advance=told.append)
    assert sum(told) == 3 * EVENTS
    yield database, report
    database.drop()


def test_the_demo_counts_the_file_as_it_is() -> None:
    counts = count(load(FILE))
    assert (counts.runs, counts.events, counts.user_turns, counts.tool_calls) == (RUNS, EVENTS, USER_TURNS, TOOL_CALLS)
    assert sum(event.is_user_turn for run in agent_runs(load(FILE)) for event in run.events) == USER_TURNS


def test_the_demo_finds_every_count_met(submitted: tuple[Database, Submitted]) -> None:
    database, report = submitted
    look(database.url("auditor"), report)
    assert report.faults() == []


def test_every_event_is_appended_once_and_every_repeat_is_told(submitted: tuple[Database, Submitted]) -> None:
    outcomes = submitted[1].outcomes
    assert (outcomes["appended"], outcomes["duplicate"]) == (EVENTS, 2 * EVENTS)
    assert outcomes["start_run: started"] == outcomes["settle_run: settled"] == RUNS
    assert outcomes["start_run: busy"] + outcomes["start_run: settled"] == 2 * RUNS
    assert outcomes["settle_run: already_settled"] == outcomes["start_run: settled"]


def test_two_hundred_runs_are_settled_with_the_tools_they_called(submitted: tuple[Database, Submitted]) -> None:
    database, _ = submitted
    with database.as_auditor() as auditor:
        assert one(
            auditor,
            """
            select count(*) as runs, count(*) filter (where status = 'succeeded') as succeeded,
                count(*) filter (where r.tools_executed = (
                    select coalesce(array_agg(distinct tool order by tool), '{}') from durable.events as e,
                    unnest(e.tool_calls) as tool where e.session_uid = r.session_uid
                )) as complete
            from durable.runs as r
            """,
        ) == {"runs": RUNS, "succeeded": RUNS, "complete": RUNS}


def test_every_user_turn_is_there_once(submitted: tuple[Database, Submitted]) -> None:
    database, _ = submitted
    with database.as_auditor() as auditor:
        assert one(
            auditor,
            """
            select count(*) as events, count(*) filter (where opening) as turns,
                count(distinct (session_uid, invocation_id)) filter (where opening) as invocations
            from durable.events
            """,
        ) == {"events": EVENTS, "turns": USER_TURNS, "invocations": USER_TURNS}


def test_every_tool_call_of_the_file_is_found(submitted: tuple[Database, Submitted]) -> None:
    database, _ = submitted
    with database.as_auditor() as auditor:
        found = auditor.execute("select tool, count(*) from durable.events, unnest(tool_calls) as tool group by tool")
        assert {row["tool"]: row["count"] for row in found} == TOOL_CALLS


def test_the_order_and_the_words_are_those_of_the_file(submitted: tuple[Database, Submitted]) -> None:
    database, _ = submitted
    expected = {
        f"task-{run['task_id']}-trial-{run['trial']}": [m for m in run["messages"] if m["role"] != "system"]
        for run in json.loads(gzip.decompress(FILE.read_bytes()))
    }
    with database.as_auditor() as auditor:
        found = auditor.execute(
            "select session_id, array_agg(content order by seq) as contents"
            " from durable.events join durable.sessions using (session_uid) group by session_id"
        )
        assert {row["session_id"]: row["contents"] for row in found} == expected


def test_every_chain_is_intact(submitted: tuple[Database, Submitted]) -> None:
    database, _ = submitted
    with database.as_auditor() as auditor:
        intact = value(
            auditor,
            "select count(*) filter (where v.intact and v.events_checked = s.last_seq) from durable.sessions as s,"
            " lateral durable.verify_session(session_uid => s.session_uid) as v",
        )
    assert intact == RUNS
