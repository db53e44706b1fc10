"""list_effects: what the caller may see, by run and by effective status, newest first."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.calls import (
    ARGS,
    SHORT,
    begin,
    effects,
    finish,
    interrupt,
    open_session,
    refund,
    resolve,
    start,
    take_over,
    wait_until_over,
)
from tests.support.harness import refused
from tests.support.rented import Rented, nothing_written


def uids(listed: list[dict[str, Any]]) -> list[UUID]:
    return [effect["effect_uid"] for effect in listed]


def test_effects_are_listed_as_they_were_sent_newest_first(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        first = refund(app, run, args={"n": 1})
        second = begin(app, run, args={"n\0": 2})
        finish(app, second["effect_uid"], "unverified", error={"e\0": "\ud800"})
        listed = effects(app)
    assert uids(listed) == [second["effect_uid"], first]
    newest = listed[0]
    assert (newest["run_uid"], newest["args"], newest["error"]) == (run, {"n\0": 2}, {"e\0": "\ud800"})
    assert (newest["status"], newest["outcome"], newest["attempt"]) == ("unverified", None, 1)
    assert newest["idempotency_key"] == second["idempotency_key"]


def test_each_status_can_be_asked_for_alone(db: Rented, run: UUID, other_run: UUID) -> None:
    with db.as_app() as app:
        succeeded = refund(app, run, step=1)
        failed = refund(app, run, "failed", step=2)
        unverified = refund(app, run, "unverified", step=3)
        begun = begin(app, run, step=4)["effect_uid"]
        refund(app, other_run)
        by_status = {
            status: uids(effects(app, run_uid=run, status=status))
            for status in ("succeeded", "failed", "unverified", "begun")
        }
        assert len(effects(app)) == 5
        assert len(effects(app, status="succeeded")) == 2
    assert by_status == {"succeeded": [succeeded], "failed": [failed], "unverified": [unverified], "begun": [begun]}


@pytest.mark.parametrize("by_run", [False, True])
@pytest.mark.parametrize("who", ["app", "operator"])
def test_a_begun_one_whose_lease_is_over_is_listed_as_unverified(db: Rented, run: UUID, by_run: bool, who: str) -> None:
    with db.as_app() as app:
        begun = begin(app, run, lease=SHORT)
    wait_until_over(db, begun["lease_expires_at"])
    which = {"run_uid": run} if by_run else {}
    with nothing_written(db), db.as_app() if who == "app" else db.as_operator() as connection:
        (listed,) = effects(connection, status="unverified", **which)
        assert effects(connection, status="begun", **which) == []
    assert (listed["effect_uid"], listed["status"]) == (begun["effect_uid"], "unverified")


def test_of_a_run_all_that_it_asked_for_is_listed_also_what_another_one_did(
    db: Rented, run: UUID, other_run: UUID
) -> None:
    with db.as_app() as app:
        shared = refund(app, run, intent="refund:7")
        refund(app, run)
        begin(app, other_run, intent="refund:7")
        listed = effects(app, run_uid=other_run)
    assert [(effect["effect_uid"], effect["run_uid"]) for effect in listed] == [(shared, run)]


def test_what_two_attempts_asked_for_is_listed_once(db: Rented, session: UUID, run: UUID) -> None:
    with db.as_app() as app:
        effect = refund(app, run)
        begin(app, run, take_over(app, session, run))
        assert uids(effects(app, run_uid=run)) == [effect]


def test_a_user_sees_its_own_and_those_of_the_tenant_as_a_whole(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        own = refund(app, run)
        shared = refund(app, run, intent="i", scope="tenant")
    with db.as_app("T1", "U2") as app:
        other = refund(app, start(app, open_session(app)))
        assert uids(effects(app)) == [other, shared]
    with db.as_app("T2") as app:
        assert effects(app) == []
    with db.as_operator() as operator:
        assert uids(effects(operator)) == [other, shared, own]
    with db.as_operator("T2") as operator:
        assert effects(operator) == []


def test_whoever_resolves_a_refund_sees_amount_and_recipient(db: Rented, run: UUID) -> None:
    with db.as_app() as app:
        effect = begin(app, run, intent="refund:7")["effect_uid"]
        interrupt(app, run)
    with db.as_operator() as operator:
        (listed,) = effects(operator, status="unverified")
        assert (listed["effect_uid"], listed["tool"], listed["args"]) == (effect, "refund", ARGS)
        resolve(operator, effect)
        assert effects(operator, status="unverified") == []


@pytest.mark.parametrize("status", ["", "finished", "BEGUN"])
def test_a_status_that_is_none_is_refused(db: Rented, run: UUID, status: str) -> None:
    with refused("22W03", match="no status of an effect"), db.as_app() as app:
        effects(app, status=status)


@pytest.mark.parametrize("whose", ["nobody's", "another user's"])
def test_of_a_run_that_is_not_there_nothing_is_listed(db: Rented, run: UUID, whose: str) -> None:
    with refused("42W05"), db.as_app("T1", "U1" if whose == "nobody's" else "U2") as app:
        effects(app, run_uid=uuid4() if whose == "nobody's" else run)


@pytest.mark.parametrize("who", ["app", "operator"])
def test_without_an_identity_nothing_is_listed(db: Rented, who: str) -> None:
    connected = db.as_app(None, None) if who == "app" else db.as_operator(None, None)
    with refused("42W01"), connected as connection:
        effects(connection)
