"""durable-pg sessions: which there are, what one holds, and whether its log is as it was written."""

import json
from typing import Any

import pytest

from tests.cli.recorded import SENT, WIDE, Recorded, record
from tests.support.cli import durable_pg
from tests.support.harness import Database, rows

MINE = ("--tenant", "T1", "--user", "U1")


@pytest.fixture(scope="module")
def recorded(module_db: Database) -> Recorded:
    return record(module_db)


def tamper(db: Database, recorded: Recorded) -> None:
    """Change what was said, as only a superuser can who lifts the guards."""
    with db.superuser() as root:
        root.execute("alter table durable.events disable trigger user")
        root.execute(
            "update durable.events set content = '{\"parts\": []}' where session_uid = %s and seq = 2",
            (recorded.session,),
        )


def as_json(*arguments: str, code: int = 0) -> dict[str, Any]:
    done = durable_pg("sessions", *arguments, "--json")
    assert (done.returncode, done.stderr) == (code, ""), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("login", "options", "names"),
    [
        ("app", MINE, ["session"]),
        ("app", (*MINE, "--closed"), ["closed"]),
        ("operator", ("--tenant", "T1", "--user", "U1"), ["session"]),
        ("operator", ("--tenant", "T1", "--app", f"an/app/{WIDE}"), ["long_session"]),
        ("auditor", ("--closed",), ["closed"]),
        ("auditor", ("--limit", "1"), ["long_session"]),
    ],
)
def test_list_shows_the_latest_activity_first_of_what_the_login_sees(
    module_db: Database, recorded: Recorded, login: str, options: tuple[str, ...], names: list[str]
) -> None:
    found = as_json("list", "--url", module_db.url(login), *options)
    assert [session["session_uid"] for session in found["sessions"]] == [str(getattr(recorded, name)) for name in names]
    assert found["more"] is ("--limit" in options)


def test_no_sessions_is_said_with_what_to_do(module_db: Database, recorded: Recorded) -> None:
    done = durable_pg("sessions", "list", "--url", module_db.url("app"), "--tenant", "T1", "--user", "nobody")
    assert (done.returncode, done.stdout) == (0, "")
    assert "No open sessions here" in done.stderr
    assert "--user" in done.stderr


@pytest.mark.parametrize("login", ["mig", "maintainer"])
def test_a_login_that_may_not_read_is_told_which_may(module_db: Database, recorded: Recorded, login: str) -> None:
    for command in (("list",), ("show", "support/s-1"), ("verify", "--all")):
        done = durable_pg("sessions", *command, "--url", module_db.url(login))
        assert (done.returncode, done.stdout) == (2, "")
        assert "Use the URL of a login in durable_app" in done.stderr


def test_show_finds_a_session_by_name_by_uid_and_by_its_beginning(module_db: Database, recorded: Recorded) -> None:
    uid = str(recorded.session)
    for name in ("support/s-1", uid, uid[:18]):
        found = as_json("show", name, "--url", module_db.url("app"), *MINE)
        assert found["session"]["session_uid"] == uid
    found = as_json("show", f"an/app/{WIDE}/{WIDE}", "--url", module_db.url("auditor"))
    assert found["session"]["session_uid"] == str(recorded.long_session)


def test_a_name_means_the_open_session_and_else_the_one_that_was_closed_last(db: Database) -> None:
    recorded = record(db)
    assert as_json("show", "support/old", "--url", db.url("app"), *MINE)["session"]["session_uid"] == str(
        recorded.closed
    )
    with db.as_app() as app:
        app.execute("select durable.open_session(app_name => 'support', session_id => 'old')")
    found = as_json("show", "support/old", "--url", db.url("app"), *MINE)["session"]
    assert found["session_uid"] != str(recorded.closed)
    assert found["closed_at"] is None


def test_a_name_that_several_users_have_lists_the_candidates(module_db: Database, recorded: Recorded) -> None:
    done = durable_pg("sessions", "show", "support/s-1", "--url", module_db.url("operator"), "--tenant", "T1")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{recorded.session}  T1 U1  support/s-1" in done.stderr
    assert "T1 U2" in done.stderr
    assert "T2" not in done.stderr


def test_a_foreign_session_is_as_absent_as_none(module_db: Database, recorded: Recorded) -> None:
    never = "01900000-0000-7000-8000-000000000000"
    foreign = str(recorded.long_session)
    for command in (("show",), ("verify",)):
        answers = [
            durable_pg("sessions", *command, name, "--url", module_db.url("app"), *MINE) for name in (foreign, never)
        ]
        assert [(done.returncode, done.stdout) for done in answers] == [(1, ""), (1, "")]
        assert answers[0].stderr.replace(foreign, never) == answers[1].stderr
        assert f"there is no session {never} here" in answers[1].stderr


def test_show_tells_state_runs_and_what_was_said_last(module_db: Database, recorded: Recorded) -> None:
    done = durable_pg("sessions", "show", "support/s-1", "--url", module_db.url("app"), *MINE)
    story = [
        f"session {recorded.session}  open",
        "name         support/s-1",
        "revision     5, 5 events",
        '{"step": 1}',
        "runs, the newest",
        str(recorded.quiet),
        str(recorded.running),
        str(recorded.failed),
        "events, the latest 5 of 5",
        "── invocation inv-1 ──",
        "[opening] » refund order 7",
        "← refund",
        "── invocation inv-2 ──",
        "[opening] » and order 8",
        "→ mail {}",
    ]
    places = [done.stdout.find(words) for words in story]
    assert -1 not in places, story[places.index(-1)]
    assert places == sorted(places)


def test_show_says_why_a_session_is_closed(module_db: Database, recorded: Recorded) -> None:
    done = durable_pg("sessions", "show", str(recorded.closed), "--url", module_db.url("auditor"))
    assert f"session {recorded.closed}  closed\n" in done.stdout
    assert "UTC, reason: done\n" in done.stdout
    assert "runs: none\n" in done.stdout


def test_json_holds_all_events_and_content_as_it_was_sent(module_db: Database, recorded: Recorded) -> None:
    found = as_json("show", str(recorded.session), "--url", module_db.url("auditor"))
    assert found["session"]["state"] == {"step": 1}
    assert found["events"][1]["content"] == SENT
    assert len(found["session"]["head_hash"]) == 64
    found = as_json("show", str(recorded.long_session), "--url", module_db.url("auditor"))
    assert len(found["events"]) == 300
    found = as_json("show", str(recorded.long_session), "--url", module_db.url("auditor"), "--events", "3")
    assert [event["seq"] for event in found["events"]] == [298, 299, 300]


@pytest.mark.parametrize(
    ("login", "options", "verified"),
    [("app", MINE, 2), ("operator", ("--tenant", "T1"), 4), ("auditor", (), 5), ("auditor", ("--user", "U1"), 3)],
)
def test_verify_all_verifies_what_the_login_sees_closed_ones_too(
    module_db: Database, recorded: Recorded, login: str, options: tuple[str, ...], verified: int
) -> None:
    found = as_json("verify", "--all", "--url", module_db.url(login), *options)
    assert (found["verified"], found["broken"]) == (verified, 0)
    assert all(session["intact"] for session in found["sessions"])


def test_verify_says_that_all_is_well_in_one_line(module_db: Database, recorded: Recorded) -> None:
    done = durable_pg("sessions", "verify", "support/s-1", "support/old", "--url", module_db.url("app"), *MINE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 sessions, 6 events: all intact\n", "")


def test_a_tampered_session_is_found_and_exit_1(db: Database) -> None:
    recorded = record(db)
    tamper(db, recorded)
    for login, options in (("app", MINE), ("operator", ("--tenant", "T1")), ("auditor", ())):
        done = durable_pg("sessions", "verify", "--all", "--url", db.url(login), *options)
        assert (done.returncode, done.stderr) == (1, "")
        first, whose, last = done.stdout.splitlines()
        assert first == f"BROKEN {recorded.session} at seq 2: altered content"
        assert whose.strip() == "support/s-1, tenant T1, user U1"
        assert last.endswith(": 1 BROKEN")
    found = as_json("verify", str(recorded.session), "--url", db.url("auditor"), code=1)
    assert (found["verified"], found["broken"]) == (1, 1)
    assert found["sessions"][0]["problem"] == "altered content"
    assert found["sessions"][0]["broken_seq"] == 2
    # Its neighbours are still well.
    assert durable_pg("sessions", "verify", str(recorded.long_session), "--url", db.url("auditor")).returncode == 0


@pytest.mark.parametrize("arguments", [(), ("support/s-1", "--all")])
def test_verify_wants_names_or_all(module_db: Database, arguments: tuple[str, ...]) -> None:
    done = durable_pg("sessions", "verify", *arguments, "--url", module_db.url("auditor"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "name sessions, or say --all" in done.stderr


def test_looking_writes_nothing(db: Database) -> None:
    recorded = record(db)
    tables = ("sessions", "events", "runs", "app_states", "user_states", "audit_log")
    before = {table: rows(db, table) for table in tables}
    for command in (
        ("runs", "list"),
        ("runs", "show", str(recorded.failed)),
        ("sessions", "list"),
        ("sessions", "show", str(recorded.session)),
        ("sessions", "verify", "--all"),
    ):
        assert durable_pg(*command, "--url", db.url("operator"), "--tenant", "T1").returncode == 0
    assert {table: rows(db, table) for table in tables} == before
