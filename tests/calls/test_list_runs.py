"""list_runs shows what was started, newest first."""

from uuid import UUID

import pytest

from tests.support.calls import call_all, open_session, settle, start
from tests.support.rented import Rented


@pytest.fixture
def session(db: Rented) -> UUID:
    with db.as_app() as app:
        return open_session(app)


def test_runs_are_listed_as_they_were_sent_newest_first(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        runs = [
            start(app, session, f"inv-{number}", input={"n\0": number}, trigger="cron", worker="w", max_attempts=3)
            for number in range(3)
        ]
        settle(app, runs[0], result={"r": "\ud800"}, tools_executed=["b", "a"])
        listed = call_all(app, "list_runs")
    assert [run["run_uid"] for run in listed] == runs[::-1]
    assert [run["input"] for run in listed] == [{"n\0": number} for number in (2, 1, 0)]
    assert {run["trigger"] for run in listed} == {"cron"}
    assert [(run["lease_holder"], run["max_attempts"]) for run in listed] == [("w", 3), ("w", 3), (None, 3)]
    settled = listed[-1]
    assert (settled["status"], settled["tools_executed"], settled["result"]) == (
        "succeeded",
        ["a", "b"],
        {"r": "\ud800"},
    )
    assert settled["settled_at"] >= settled["started_at"]
    assert listed[0]["settled_at"] is None


def test_runs_of_one_session_can_be_listed_alone(db: Rented, session: UUID) -> None:
    with db.as_app() as app:
        first = start(app, session)
        start(app, open_session(app, "s2"))
        assert [run["run_uid"] for run in call_all(app, "list_runs", session_uid=session)] == [first]


def test_an_operator_lists_the_runs_of_its_tenant(db: Rented, session: UUID) -> None:
    for tenant, user in (("T1", "U1"), ("T1", "U2"), ("T2", "U1")):
        with db.as_app(tenant, user) as app:
            start(app, open_session(app))
    with db.as_operator() as operator:
        assert sorted(run["user_id"] for run in call_all(operator, "list_runs")) == ["U1", "U2"]
