"""durable-pg runs list, and whom runs show answers: who sees which, and what is said otherwise."""

import json

import pytest

from tests.cli.recorded import Recorded, age, record
from tests.support.calls import call, open_session, start
from tests.support.cli import durable_pg
from tests.support.harness import Database

MINE = ("--tenant", "T1", "--user", "U1")


@pytest.fixture(scope="module")
def recorded(module_db: Database) -> Recorded:
    return record(module_db)


def listed(db: Database, login: str, *options: str) -> list[str]:
    done = durable_pg("runs", "list", "--url", db.url(login), "--json", *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return [run["run_uid"] for run in json.loads(done.stdout)["runs"]]


@pytest.mark.parametrize(
    ("login", "options", "names"),
    [
        ("app", MINE, ["quiet", "running", "failed"]),
        ("operator", ("--tenant", "T1"), ["long", "neighbour", "quiet", "running", "failed"]),
        ("operator", ("--tenant", "T1", "--user", "U2"), ["neighbour"]),
        ("auditor", (), ["long", "stranger", "neighbour", "quiet", "running", "failed"]),
        ("auditor", ("--tenant", "T2"), ["stranger"]),
        ("auditor", ("--user", "U1"), ["stranger", "quiet", "running", "failed"]),
        ("auditor", ("--status", "running"), ["running"]),
        ("auditor", ("--session", "support/s-1", *MINE), ["quiet", "running", "failed"]),
        ("auditor", ("--app", "support", "--limit", "2"), ["stranger", "neighbour"]),
        ("auditor", ("--since", "1h", "--tenant", "T2"), ["stranger"]),
        ("auditor", ("--since", "2999-01-01T00:00Z"), []),
    ],
)
def test_list_shows_the_newest_first_of_what_the_login_sees(
    module_db: Database, recorded: Recorded, login: str, options: tuple[str, ...], names: list[str]
) -> None:
    assert listed(module_db, login, *options) == [str(getattr(recorded, name)) for name in names]


def test_a_superuser_looks_as_an_auditor(module_db: Database, recorded: Recorded) -> None:
    done = durable_pg("runs", "list", "--url", module_db.server.url(module_db.name), "--json")
    assert len(json.loads(done.stdout)["runs"]) == 6


def test_list_says_when_there_are_more(module_db: Database, recorded: Recorded) -> None:
    done = durable_pg("runs", "list", "--url", module_db.url("auditor"), "--limit", "2")
    assert "newest 2; there are more: --limit" in done.stderr
    done = durable_pg("runs", "list", "--url", module_db.url("auditor"), "--limit", "2", "--json")
    assert (json.loads(done.stdout)["more"], done.stderr) == (True, "")


def test_list_tells_what_each_run_executed(module_db: Database, recorded: Recorded) -> None:
    done = durable_pg("runs", "list", "--url", module_db.url("app"), *MINE)
    quiet, running, failed = (line.split("  ")[-1] for line in done.stdout.splitlines()[1:])
    assert (quiet.strip(), running.strip(), failed.strip()) == ("unknown", "-", "refund")


def test_a_run_that_nobody_holds_any_more_is_listed_as_such(db: Database) -> None:
    recorded = record(db)
    with db.as_app() as app:
        given_back = start(app, recorded.session, "inv-4")
        call(app, "interrupt_run", run_uid=given_back, attempt=1)
    age(db, recorded.running, hours=5)
    gone = [str(given_back), str(recorded.running)]
    assert listed(db, "auditor", "--status", "interrupted") == gone
    assert listed(db, "auditor", "--status", "running") == []
    done = durable_pg("runs", "list", "--url", db.url("app"), *MINE)
    shown = [line.split("  ")[:2] for line in done.stdout.splitlines()]
    assert [[gone[0], "interrupted"], [gone[1], "lease over"]] == [line for line in shown if line[0] in gone]


def test_tenant_and_user_come_from_the_environment(module_db: Database, recorded: Recorded) -> None:
    names = {"DURABLE_PG_TENANT": "T1", "DURABLE_PG_USER": "U2", "DURABLE_PG_URL": module_db.url("app")}
    done = durable_pg("runs", "list", "--json", extra=names)
    assert [run["run_uid"] for run in json.loads(done.stdout)["runs"]] == [str(recorded.neighbour)]


@pytest.mark.parametrize("options", [(), ("--status", "failed")])
def test_no_runs_is_said_with_what_to_do_and_exit_0(
    module_db: Database, recorded: Recorded, options: tuple[str, ...]
) -> None:
    done = durable_pg("runs", "list", "--url", module_db.url("app"), "--tenant", "T1", "--user", "nobody", *options)
    assert (done.returncode, done.stdout) == (0, "")
    assert "No runs of tenant T1, user nobody" in done.stderr
    assert ("try fewer options" if options else "start_run makes") in done.stderr


@pytest.mark.parametrize(
    ("login", "options", "words"),
    [
        ("mig", (), "mig is not in any role that may read"),
        ("maintainer", (), "maintainer is a maintainer, who may not read content"),
        ("app", (), "--tenant and --user are missing: app is an application's login"),
        ("app", ("--tenant", "T1"), "--user is missing"),
        ("operator", ("--user", "U1"), "--tenant is missing: operator is an operator's login"),
        ("app", (*MINE, "--as", "U2"), "app is no operator"),
        ("auditor", ("--as", "me"), "auditor is no operator"),
        ("auditor", ("--tenant", ""), "--tenant is empty"),
        (
            "auditor",
            ("--status", "runing"),
            "It is one of: awaiting, cancelled, failed, interrupted, running, succeeded.",
        ),
        ("auditor", ("--since", "yesterday"), "Write 90s, 30m, 2h, 7d"),
    ],
)
def test_what_can_not_be_answered_is_exit_2_and_says_what_to_do(
    module_db: Database, recorded: Recorded, login: str, options: tuple[str, ...], words: str
) -> None:
    done = durable_pg("runs", "list", "--url", module_db.url(login), *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "hint: " in done.stderr or "is a variable not set?" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_operator_looks_under_a_name_of_its_own(module_db: Database, recorded: Recorded) -> None:
    url = module_db.url("operator")
    assert durable_pg("runs", "list", "--url", url, "--tenant", "T1", "--as", "dana").returncode == 0
    # The name goes to act_as, which refuses this one.
    done = durable_pg("runs", "list", "--url", url, "--tenant", "T1", "--as", " dana")
    assert (done.returncode, done.stdout) == (1, "")
    assert "22W01" in done.stderr


def test_a_database_without_durable_pg_is_told_apart(empty_database: Database) -> None:
    done = durable_pg("runs", "list", "--url", empty_database.url("mig"))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"not installed in database {empty_database.name}" in done.stderr
    assert "durable-pg upgrade" in done.stderr


@pytest.mark.parametrize(
    ("login", "options", "foreign"),
    [("app", MINE, "neighbour"), ("operator", ("--tenant", "T1"), "stranger"), ("auditor", MINE, "neighbour")],
)
def test_a_foreign_run_is_as_absent_as_none(
    module_db: Database, recorded: Recorded, login: str, options: tuple[str, ...], foreign: str
) -> None:
    never = "01900000-0000-7000-8000-000000000000"
    uid = str(getattr(recorded, foreign))
    answers = [durable_pg("runs", "show", name, "--url", module_db.url(login), *options) for name in (uid, never)]
    assert [(done.returncode, done.stdout) for done in answers] == [(1, ""), (1, "")]
    assert answers[0].stderr.replace(uid, never) == answers[1].stderr
    assert f"there is no run {never} here" in answers[1].stderr


def test_a_unique_beginning_is_enough_and_an_ambiguous_one_lists_the_candidates(db: Database) -> None:
    with db.as_app() as app:
        session = open_session(app)
        runs = [start(app, session, name) for name in ("inv-1", "inv-2", "inv-3")]
    uids = [f"01900000-0000-7000-8000-00000000000{digit}" for digit in "123"]
    uids[2] = uids[2].replace("01900000", "01900001")
    with db.superuser() as root:
        root.execute("alter table durable.runs disable trigger user")
        for run, uid in zip(runs, uids, strict=True):
            root.execute("update durable.runs set run_uid = %s where run_uid = %s", (uid, run))
    url = db.url("auditor")
    for beginning in ("01900001", "0190000100007000", uids[2].upper()):
        assert (
            json.loads(durable_pg("runs", "show", beginning, "--url", url, "--json").stdout)["run"]["run_uid"]
            == uids[2]
        )
    done = durable_pg("runs", "show", "01900000", "--url", url)
    assert (done.returncode, done.stdout) == (2, "")
    assert uids[0] in done.stderr
    assert uids[1] in done.stderr
    assert uids[2] not in done.stderr


@pytest.mark.parametrize("name", ["0190000", "not-a-uid", "01900000-0000-7000-8000-0000000000000"])
def test_what_is_no_uid_is_exit_2(module_db: Database, name: str) -> None:
    done = durable_pg("runs", "show", name, "--url", module_db.url("auditor"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "at least its first 8 characters" in done.stderr


def test_errors_are_json_too(module_db: Database, recorded: Recorded) -> None:
    done = durable_pg("runs", "show", "01900000", "--url", module_db.url("app"), *MINE, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"] == "NotFound"


@pytest.mark.parametrize("command", [("runs",), ("sessions",)])
def test_a_group_without_a_command_explains_itself(command: tuple[str, ...]) -> None:
    done = durable_pg(*command)
    assert done.returncode == 2
    assert "Example: durable-pg" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [("runs", "list"), ("runs", "show"), ("sessions", "list"), ("sessions", "show"), ("sessions", "verify")],
)
def test_help_teaches_by_an_example(command: tuple[str, ...]) -> None:
    done = durable_pg(*command, "--help")
    assert done.returncode == 0
    assert f"Example: durable-pg {' '.join(command)}" in done.stdout
    for option in ("--tenant", "--user", "--as", "--url", "--json"):
        assert option in done.stdout
