"""durable-pg runs show: a timeline that can be read and believed, and JSON that is complete."""

import json
import re
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from tests.cli.recorded import NASTY, SENT, WIDE, Recorded, age, record
from tests.support.calls import append, call, open_session, rewind_before, said, say, settle, start
from tests.support.cli import durable_pg
from tests.support.harness import Database


@pytest.fixture(scope="module")
def recorded(module_db: Database) -> Recorded:
    return record(module_db)


def shown(db: Database, run: UUID, *options: str) -> str:
    done = durable_pg("runs", "show", str(run), "--url", db.url("auditor"), *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def flat(text: str) -> str:
    """Undo how a terminal breaks lines."""
    return " ".join(text.split())


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


def test_a_run_whose_lease_lasts_may_be_at_work(module_db: Database, recorded: Recorded) -> None:
    text = shown(module_db, recorded.running)
    assert "tools        not settled; recorded so far: mail\n" in text
    assert re.search(r"lease        for another [45] min.*, held by w-1\n", text)
    assert "next         It may be at work" in text
    assert "send again   no: tool calls are recorded and may have had their effect (mail)\n" in text


def test_silence_shows_and_a_run_whose_lease_is_over_waits_for_the_next_start(db: Database) -> None:
    running = record(db).running
    age(db, running, hours=5)
    text = shown(db, running)
    assert f"run {running}  lease over\n" in text
    assert "lease        ran out 4 h ago, was held by w-1\n" in text
    assert "… 5 h nothing …" in text
    assert flat("Nothing by hand: the next start_run of this invocation takes it up, as attempt 2.") in flat(text)
    assert as_json(db, running)["run"]["lease_over"] is True


def test_an_interrupted_run_tells_why_and_which_effects_to_look_into(db: Database) -> None:
    with db.as_app() as app:
        session = open_session(app)
        say(app, session)
        run = start(app, session, max_attempts=3)
        call(app, "begin_effect", run_uid=run, attempt=1, tool="refund")
        call(app, "interrupt_run", run_uid=run, attempt=1, error={"why": "deployed anew"})
    text = shown(db, run)
    assert f"run {run}  interrupted\n" in text
    assert "attempt      1 (at most 3), triggered by user\n" in text
    assert re.search(r"lease        none, given up \d+ s ago\n", text)
    assert "tools        not settled; recorded so far: refund\n" in text
    assert '\ninterrupted with\n  {"why": "deployed anew"}\n' in text
    assert "send again   no: nobody knows whether an effect happened (refund)\n" in text
    assert flat("next Find out whether these took effect: refund. durable-pg effects list --status unverified") in flat(
        text
    )
    assert flat("the next start_run of this invocation takes it up, as attempt 2.") in flat(text)


def test_a_run_without_an_attempt_left_is_said_to_fail(db: Database) -> None:
    with db.as_app() as app:
        run = start(app, open_session(app), max_attempts=1)
    age(db, run, hours=5)
    assert flat("the next start_run of this invocation settles it as failed") in flat(shown(db, run))


def test_a_run_of_a_closed_session_is_to_be_called_off(db: Database) -> None:
    with db.as_app() as app:
        session = open_session(app)
        run = start(app, session)
        call(app, "interrupt_run", run_uid=run, attempt=1)
        call(app, "close_session", session_uid=session)
    text = flat(shown(db, run))
    assert flat("Its session is closed, so nothing takes it up. Call it off") in text
    assert "start_run" not in text


def test_who_answers_for_an_event_is_told_where_it_changes(db: Database) -> None:
    with db.as_app() as app:
        session = open_session(app)
        run = start(app, session)
        for attempt in (1, 2):
            append(app, session, "agent", said(f"by {attempt}"), invocation_id="inv-1", attempt=attempt)
            append(app, session, "agent", said(f"more of {attempt}"), invocation_id="inv-1", attempt=attempt)
            call(app, "interrupt_run", run_uid=run, attempt=attempt)
            call(app, "start_run", session_uid=session, invocation_id="inv-1")
    text = shown(db, run)
    assert "» by 1" in text
    assert "[attempt 2] » by 2" in text
    assert text.count("[attempt") == 1


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
        append(app, session, content=f'{{"parts": [{{"text": "x", "n": {digits}}}]}}', invocation_id="inv-1", attempt=1)
        append(app, session, content="[" * 3000 + "]" * 3000, invocation_id="inv-1", attempt=1)
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
