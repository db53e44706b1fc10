"""durable-pg effects list and resolve: who sees which, and what is written by whom."""

import json
from typing import Any
from uuid import UUID

import pytest

from tests.cli.ledger import Ledger, record
from tests.support.cli import durable_pg
from tests.support.harness import Database, rows

MINE = ("--tenant", "T1", "--user", "U1")
LOOKED = ("--channel", "Stripe dashboard", "--seen", "refund re_7 of 5 EUR")


@pytest.fixture(scope="module")
def ledger(module_db: Database) -> Ledger:
    return record(module_db)


def listed(db: Database, login: str, *options: str) -> list[dict[str, Any]]:
    done = durable_pg("effects", "list", "--url", db.url(login), "--json", *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["effects"]
    return found


def effect(db: Database, uid: UUID) -> dict[str, Any]:
    (found,) = (row for row in rows(db, "effects") if row["effect_uid"] == uid)
    return found


@pytest.mark.parametrize(
    ("login", "options", "names"),
    [
        ("app", MINE, ["unverified", "failed", "succeeded"]),
        ("operator", ("--tenant", "T1"), ["neighbour", "unverified", "failed", "succeeded"]),
        ("operator", ("--tenant", "T1", "--user", "U2"), ["neighbour"]),
        ("auditor", (), ["neighbour", "unverified", "failed", "succeeded"]),
        ("auditor", ("--status", "unverified"), ["unverified"]),
        ("auditor", ("--status", "begun"), ["neighbour"]),
        ("auditor", ("--tool", "refund", "--limit", "1"), ["neighbour"]),
        ("auditor", ("--tenant", "T2"), []),
    ],
)
def test_list_shows_the_newest_first_of_what_the_login_sees(
    module_db: Database, ledger: Ledger, login: str, options: tuple[str, ...], names: list[str]
) -> None:
    assert [found["effect_uid"] for found in listed(module_db, login, *options)] == [
        str(getattr(ledger, name)) for name in names
    ]


def test_list_of_one_run(module_db: Database, ledger: Ledger) -> None:
    assert len(listed(module_db, "operator", "--tenant", "T1", "--run", str(ledger.run))) == 3


def test_json_has_everything_as_it_was_sent(module_db: Database, ledger: Ledger) -> None:
    unverified, failed, succeeded = listed(module_db, "app", *MINE)
    assert (succeeded["args"], succeeded["result"]) == ({"to": "mia", "nul": "a\0b"}, {"id": "m-1"})
    assert (succeeded["intent"], succeeded["run_uid"]) == ("mail:mia", str(ledger.run))
    assert failed["error"] == {"why": "full"}
    assert unverified["idempotency_key"].startswith("dpg_")


def test_an_effect_whose_lease_is_over_is_unverified(db: Database) -> None:
    neighbour = record(db).neighbour
    with db.superuser() as root:
        root.execute(
            "update durable.effects set lease_expires_at = clock_timestamp() where effect_uid = %s", (neighbour,)
        )
    (found,) = listed(db, "operator", "--tenant", "T1", "--user", "U2")
    assert (found["effect_uid"], found["status"]) == (str(neighbour), "unverified")
    assert listed(db, "operator", "--tenant", "T1", "--status", "begun") == []


def test_a_person_is_shown_amount_and_recipient(module_db: Database, ledger: Ledger) -> None:
    done = durable_pg("effects", "list", "--url", module_db.url("operator"), "--tenant", "T1", "--status", "unverified")
    title, line = done.stdout.splitlines()
    assert title.split() == ["EFFECT", "STATUS", "BEGUN", "TOOL", "INTENT", "USER", "ARGS"]
    for words in (str(ledger.unverified), "unverified", "refund", "step 0", "U1", '"cents": 500'):
        assert words in line


def test_no_effects_is_said_with_what_to_do(module_db: Database, ledger: Ledger) -> None:
    done = durable_pg("effects", "list", "--url", module_db.url("app"), "--tenant", "T1", "--user", "nobody")
    assert (done.returncode, done.stdout) == (0, "")
    assert "No effects of tenant T1, user nobody: begin_effect makes the first one." in done.stderr


@pytest.mark.parametrize(("login", "who"), [("app", MINE), ("operator", ("--tenant", "T1", "--as", "dana"))])
def test_resolving_records_the_outcome_the_evidence_and_who(db: Database, login: str, who: tuple[str, ...]) -> None:
    uid = record(db).unverified
    options = (*who, *LOOKED, "--succeeded", "--result", '{"id": "re_7"}', "--json")
    done = durable_pg("effects", "resolve", str(uid)[:18], "--url", db.url(login), *options)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["outcome"], told["effect"]["status"], told["effect"]["result"]) == (
        *("resolved", "succeeded", {"id": "re_7"}),
    )
    found = effect(db, uid)
    assert (found["status"], found["result"]) == ("succeeded", {"id": "re_7"})
    assert (found["evidence"]["channel"], found["evidence"]["seen"]) == ("Stripe dashboard", "refund re_7 of 5 EUR")
    (act,) = rows(db, "audit_log")
    assert (act["action"], act["login"], act["acted_by"], act["subject_uid"]) == (
        *("resolve_effect", login, who[-1], uid),
    )


def test_resolving_again_is_told_and_another_outcome_refused(db: Database) -> None:
    uid = str(record(db).unverified)
    operator = ("--url", db.url("operator"), "--tenant", "T1", *LOOKED)
    first = durable_pg("effects", "resolve", uid, *operator, "--failed")
    assert f"refund {uid} has failed. It is executed again when" in first.stdout
    assert "has already failed" in durable_pg("effects", "resolve", uid, *operator, "--failed").stdout
    before = rows(db, "effects")
    refused = durable_pg("effects", "resolve", uid, *operator, "--succeeded")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "23W02" in refused.stderr
    assert rows(db, "effects") == before


T1 = ("--tenant", "T1")


@pytest.mark.parametrize(
    ("login", "options", "told"),
    [
        ("operator", (*T1, *LOOKED), (2, "--succeeded or --failed is missing")),
        ("operator", (*T1, *LOOKED, "--succeeded", "--result", "{"), (2, "--result is no JSON")),
        ("operator", (*T1, "--failed", "--channel", " ", "--seen", "it"), (1, "evidence does not say channel")),
        ("operator", ("--tenant", "T2", *LOOKED, "--failed"), (1, "there is no effect")),
        ("app", (*T1, "--user", "U2", *LOOKED, "--failed"), (1, "there is no effect")),
        ("auditor", (*LOOKED, "--failed"), (2, "auditor is an auditor's login, which writes nothing")),
    ],
)
def test_what_can_not_be_resolved_writes_nothing(
    module_db: Database, ledger: Ledger, login: str, options: tuple[str, ...], told: tuple[int, str]
) -> None:
    before = rows(module_db, "effects"), rows(module_db, "audit_log")
    done = durable_pg("effects", "resolve", str(ledger.unverified), "--url", module_db.url(login), *options)
    assert (done.returncode, done.stdout, told[1] in done.stderr) == (told[0], "", True)
    assert "Traceback" not in done.stderr
    assert (rows(module_db, "effects"), rows(module_db, "audit_log")) == before


def test_an_effect_that_is_in_flight_is_not_resolved(module_db: Database, ledger: Ledger) -> None:
    before = rows(module_db, "effects")
    options = ("--url", module_db.url("operator"), "--tenant", "T1", *LOOKED, "--failed")
    done = durable_pg("effects", "resolve", str(ledger.neighbour), *options)
    assert (done.returncode, "55W09" in done.stderr) == (1, True)
    assert rows(module_db, "effects") == before


@pytest.mark.parametrize("name", ["0190000", "not-a-uid"])
def test_what_is_no_uid_is_exit_2(module_db: Database, name: str) -> None:
    done = durable_pg(
        "effects", "resolve", name, "--url", module_db.url("operator"), "--tenant", "T1", *LOOKED, "--failed"
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "at least its first 8 characters" in done.stderr


def test_an_unknown_status_is_exit_2(module_db: Database) -> None:
    done = durable_pg("effects", "list", "--url", module_db.url("auditor"), "--status", "unknown")
    assert (done.returncode, "begun, succeeded, failed, unverified" in done.stderr) == (2, True)


@pytest.mark.parametrize("command", [("effects", "list"), ("effects", "resolve"), ("tools", "list"), ("tools", "sync")])
def test_help_teaches_by_an_example(command: tuple[str, ...]) -> None:
    done = durable_pg(*command, "--help")
    assert done.returncode == 0
    assert f"Example: durable-pg {' '.join(command)}" in done.stdout
    for option in ("--tenant", "--user", "--as", "--url", "--json"):
        assert option in done.stdout
