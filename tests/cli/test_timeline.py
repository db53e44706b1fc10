"""durable-pg runs show: a timeline that can be read and believed, and JSON that is complete."""

import json
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from tests.calls import append, open_session, rewind_before, say, settle, start
from tests.cli.recorded import NASTY, SENT, WIDE, Recorded, age, record
from tests.harness import Database
from tests.migrations.support import durable_pg


@pytest.fixture(scope="module")
def recorded(module_db: Database) -> Recorded:
    return record(module_db)


def shown(db: Database, run: UUID, *options: str) -> str:
    done = durable_pg("runs", "show", str(run), "--url", db.url("auditor"), *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def as_json(db: Database, run: UUID, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shown(db, run, "--json", *options))
    return found


def test_show_tells_the_story_in_order(module_db: Database, recorded: Recorded) -> None:
    text = shown(module_db, recorded.failed)
    story = [
        f"run {recorded.failed}  failed",
        "tenant       T1",
        "user         U1",
        "session      support/s-1",
        "invocation   inv-1, generation 0",
        "attempt      1, triggered by user",
        "tools        refund",
        '{"nul": "a\\u0000b", "order": 7}',
        "events (3)",
        "user           [opening] » refund order 7",
        "── run started ──",
        "support_agent  » ",
        '→ refund {"big": 12345678901234567890123, "order": 7, "amount": 12.5}',
        'tools          ← refund {"ok": true}',
        "── settled: failed ──",
        '{"why": "the provider timed out"}',
        "send again   no: it is settled",
        "replay       no: tools were executed, and would be again (refund)",
        "next         Before the turn is said again, ask the provider behind each tool",
    ]
    places = [text.find(words) for words in story]
    assert -1 not in places, story[places.index(-1)]
    assert places == sorted(places)


def test_tools_that_nothing_recorded_names_are_unknown(module_db: Database, recorded: Recorded) -> None:
    text = shown(module_db, recorded.quiet)
    assert "tools        unknown: nothing recorded names tools\n" in text
    assert "events: none is recorded\n" in text
    assert "replay       no: nobody knows what it did" in text


def test_a_succeeded_run_needs_nothing(module_db: Database, recorded: Recorded) -> None:
    text = shown(module_db, recorded.neighbour)
    assert '\nresult\n  {"text": "done"}\n' in text
    assert "next         Nothing: whoever sends this turn again gets the recorded result." in text


def test_a_run_that_just_recorded_something_may_be_at_work(module_db: Database, recorded: Recorded) -> None:
    text = shown(module_db, recorded.running)
    assert "tools        not settled; recorded so far: mail\n" in text
    assert "next         It may be at work" in text
    assert "send again   no: tool calls are recorded and may have had their effect (mail)\n" in text


def test_silence_shows_and_a_silent_run_leads_to_the_recipe(db: Database) -> None:
    running = record(db).running
    age(db, running, hours=5)
    text = shown(db, running)
    assert "… 5 h nothing …" in text
    assert "next         Nothing was recorded for 5 h. Is its process dead?" in text
    assert 'docs/operate.md, "Runs that are stuck"' in text


def test_what_a_rewind_took_back_is_marked(db: Database) -> None:
    with db.as_app() as app:
        session = open_session(app)
        say(app, session, "first")
        run = start(app, session)
        settle(app, run, status="failed")
        append(app, session, "system", invocation_id="rewind", metadata=rewind_before("inv-1"))
        say(app, session, "again")
        again = start(app, session)
    assert "[opening, taken back by #2] » first" in shown(db, run)
    assert "invocation   inv-1, generation 1\n" in shown(db, again)
    assert "first" not in shown(db, again)


def test_json_is_complete_and_content_as_it_was_sent(module_db: Database, recorded: Recorded) -> None:
    found = as_json(module_db, recorded.failed)
    assert [event["seq"] for event in found["events"]] == [1, 2, 3]
    assert found["events"][1]["content"] == SENT
    assert SENT["parts"][0]["text"] == NASTY  # type: ignore[index]
    assert found["events"][1]["metadata"] == {"trace": "t-1"}
    assert found["run"]["input"] == {"order": 7, "nul": "a\x00b"}
    assert found["run"]["error"] == {"why": "the provider timed out"}
    assert found["replay_verdict"] == {"allowed": False, "reason": "tools_executed", "tools": ["refund"]}
    assert found["retry_verdict"]["reason"] == "settled"
    for moment in (found["run"]["started_at"], found["run"]["settled_at"], found["events"][0]["recorded_at"]):
        assert datetime.fromisoformat(moment).utcoffset() is not None
    assert found["run"]["duration"] > 0


def test_json_keeps_every_digit(db: Database) -> None:
    with db.as_app() as app:
        session = open_session(app)
        run = start(app, session, input='{"a": 1.10, "b": 1e400, "c": 123456789012345678901234567890}')
        digits = "1" * 5000
        append(app, session, content=f'{{"parts": [{{"text": "x", "n": {digits}}}]}}', invocation_id="inv-1")
        append(app, session, content="[" * 3000 + "]" * 3000, invocation_id="inv-1")
    text = shown(db, run, "--json")
    assert '"a": 1.10' in text
    assert f'"b": 1{"0" * 400}' in text
    assert digits in text
    assert "[" * 3000 in text
    assert shown(db, run, "--full").count("[[[") > 1


def test_json_is_valid_in_any_encoding_of_the_terminal(module_db: Database, recorded: Recorded) -> None:
    names = {"PYTHONIOENCODING": "ascii", "DURABLE_PG_URL": module_db.url("auditor")}
    done = durable_pg("runs", "show", str(recorded.failed), "--json", extra=names)
    assert json.loads(done.stdout)["events"][1]["content"] == SENT
    assert durable_pg("runs", "show", str(recorded.failed), extra=names).returncode == 0


def test_only_the_latest_events_are_shown_when_asked(module_db: Database, recorded: Recorded) -> None:
    text = shown(module_db, recorded.long, "--events", "2")
    assert "events, the latest 2 of 300 (--events 0: all)" in text
    assert "» step 298" in text
    assert "» step 296" not in text
    assert [event["seq"] for event in as_json(module_db, recorded.long, "--events", "2")["events"]] == [299, 300]
    assert "events (300)" in shown(module_db, recorded.long, "--events", "0")


def test_full_shows_contents_whole(module_db: Database, recorded: Recorded) -> None:
    plain = WIDE.replace("\u200d", "")
    assert plain in shown(module_db, recorded.long, "--full").replace("\u200d", "")
    assert 'metadata {"trace": "t-1"}' in shown(module_db, recorded.failed, "--full")
    assert "metadata" not in shown(module_db, recorded.failed)
