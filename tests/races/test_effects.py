"""Of all who begin one new effect at once one is told to call the tool; when it dies nobody calls it twice."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import DictRow

from tests.support.calls import EVIDENCE, begin, finish, interrupt, open_session, resolve, start, wait_until_over
from tests.support.harness import Connection, connections, wait_until_blocked
from tests.support.rented import Rented, stored

MANY = 50
INTENT: dict[str, Any] = {"intent": "refund:7"}


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(MANY) as executor:
        yield executor


@pytest.fixture
def many(db: Rented) -> Iterator[list[Connection]]:
    """Half of all the connections that a server has by default: one test at a time, whichever process it runs in."""
    with db.server.connect() as root:
        root.execute("select pg_advisory_lock(hashtext('half of all connections'))")
        with connections(db, MANY) as apps:
            yield apps


@pytest.fixture
def run(db: Rented) -> UUID:
    with db.as_app() as app:
        return start(app, open_session(app))


def runs(db: Rented, number: int = MANY) -> list[UUID]:
    """Start runs of one user, each in a session of its own."""
    with db.as_app() as app:
        return [start(app, open_session(app, f"s{place}"), f"inv-{place}") for place in range(number)]


def all_at_once(
    db: Rented, apps: list[Connection], threads: ThreadPoolExecutor, act: Callable[[Connection, int], DictRow]
) -> list[DictRow]:
    """Let each connection do this in a transaction of its own, all at the same moment."""
    together = Barrier(len(apps), timeout=30)

    def one(place: int) -> DictRow:
        app = apps[place]
        db.act_as(app)
        together.wait()
        told = act(app, place)
        app.commit()
        return told

    return list(threads.map(one, range(len(apps))))


def outcomes(told: list[DictRow]) -> Counter[str]:
    return Counter(str(row["outcome"]) for row in told)


def terminate(db: Rented, app: Connection) -> None:
    with db.superuser() as root:
        root.execute("select pg_terminate_backend(%s, 5000)", (app.info.backend_pid,))


@pytest.mark.parametrize("key", [{}, INTENT, {**INTENT, "scope": "tenant"}])
def test_within_one_run_exactly_one_executes(
    db: Rented, run: UUID, many: list[Connection], threads: ThreadPoolExecutor, key: dict[str, Any]
) -> None:
    told = all_at_once(db, many, threads, lambda app, _: begin(app, run, **key))
    assert outcomes(told) == {"execute": 1, "in_flight": MANY - 1}
    assert len({row["effect_uid"] for row in told}) == len(stored(db, "effects")) == 1
    assert len(stored(db, "effect_calls")) == 1


@pytest.mark.parametrize("scope", ["user", "tenant"])
def test_across_runs_under_one_intent_exactly_one_executes(
    db: Rented, many: list[Connection], threads: ThreadPoolExecutor, scope: str
) -> None:
    held = runs(db)
    told = all_at_once(db, many, threads, lambda app, place: begin(app, held[place], scope=scope, **INTENT))
    assert outcomes(told) == {"execute": 1, "in_flight": MANY - 1}
    assert len({row["effect_uid"] for row in told}) == len(stored(db, "effects")) == 1
    assert {row["run_uid"] for row in stored(db, "effect_calls")} == set(held)


def test_after_a_certain_failure_exactly_one_executes_again(
    db: Rented, many: list[Connection], threads: ThreadPoolExecutor
) -> None:
    held = runs(db)
    with db.as_app() as app:
        finish(app, begin(app, held[0], **INTENT)["effect_uid"], "failed")
    told = all_at_once(db, many, threads, lambda app, place: begin(app, held[place], **INTENT))
    assert outcomes(told) == {"execute": 1, "in_flight": MANY - 1}
    assert {row["failures"] for row in told} == {1}
    assert sorted(row["failures"] for row in stored(db, "effects")) == [0, 1]


def test_while_the_provider_dedupes_exactly_one_asks_it_again(
    db: Rented, many: list[Connection], threads: ThreadPoolExecutor
) -> None:
    key = {"provider_dedupes_for": "1 hour", **INTENT}
    held = runs(db)
    with db.as_app() as app:
        lost = start(app, open_session(app, "lost"), "lost")
        first = begin(app, lost, **key)
        interrupt(app, lost)
    told = all_at_once(db, many, threads, lambda app, place: begin(app, held[place], **key))
    assert outcomes(told) == {"execute": 1, "in_flight": MANY - 1}
    assert {row["idempotency_key"] for row in told} == {first["idempotency_key"]}


@pytest.mark.parametrize("key", [{}, INTENT])
@pytest.mark.parametrize("one_run", [True, False])
def test_when_the_winner_dies_before_its_commit_another_one_executes(
    db: Rented, many: list[Connection], threads: ThreadPoolExecutor, *, one_run: bool, key: dict[str, Any]
) -> None:
    if not one_run:
        key = INTENT
    held = runs(db, 1) * MANY if one_run else runs(db)
    winner, others = many[0], many[1:]
    db.act_as(winner)
    won = begin(winner, held[0], **key)
    assert won["outcome"] == "execute"

    waiting = [threads.submit(begin_and_commit, db, app, run, key) for app, run in zip(others, held[1:], strict=True)]
    for app in others:
        wait_until_blocked(db, app)
    terminate(db, winner)
    told = [future.result(timeout=30) for future in waiting]
    assert outcomes(told) == {"execute": 1, "in_flight": MANY - 2}
    assert {row["idempotency_key"] for row in told} == {won["idempotency_key"]}
    assert len(stored(db, "effects")) == 1


def begin_and_commit(db: Rented, app: Connection, run: UUID, key: dict[str, Any]) -> DictRow:
    db.act_as(app)
    told = begin(app, run, **key)
    app.commit()
    return told


def test_when_the_winner_dies_after_its_commit_nobody_executes_until_somebody_looked(
    db: Rented, many: list[Connection], threads: ThreadPoolExecutor
) -> None:
    held = runs(db)
    winner = many[0]
    db.act_as(winner)
    won = begin(winner, held[0], lease="2 seconds", **INTENT)
    winner.commit()
    terminate(db, winner)
    told = all_at_once(db, many[1:], threads, lambda app, place: begin(app, held[place + 1], **INTENT))
    assert outcomes(told).keys() <= {"in_flight", "unverified"}
    wait_until_over(db, won["lease_expires_at"])
    told = all_at_once(db, many[1:], threads, lambda app, place: begin(app, held[place + 1], **INTENT))
    assert outcomes(told) == {"unverified": MANY - 1}
    with db.as_app() as app:
        resolve(app, won["effect_uid"], "failed")
    told = all_at_once(db, many[1:], threads, lambda app, place: begin(app, held[place + 1], **INTENT))
    assert outcomes(told) == {"execute": 1, "in_flight": MANY - 2}


def test_with_other_arguments_at_once_one_executes_and_the_others_are_refused(
    db: Rented, many: list[Connection], threads: ThreadPoolExecutor
) -> None:
    held = runs(db)

    def ask(app: Connection, place: int) -> DictRow:
        try:
            return begin(app, held[place], args={"order": place}, **INTENT)
        except psycopg.Error as error:
            app.rollback()
            return {"outcome": error.sqlstate}

    assert outcomes(all_at_once(db, many, threads, ask)) == {"execute": 1, "23W10": MANY - 1}


def test_of_many_who_resolve_at_once_one_does_and_one_audit_row_says_so(
    db: Rented, run: UUID, many: list[Connection], threads: ThreadPoolExecutor
) -> None:
    with db.as_app() as app:
        effect = begin(app, run)["effect_uid"]
        interrupt(app, run)
    told = all_at_once(db, many, threads, lambda app, _: resolve(app, effect))
    assert outcomes(told) == {"resolved": 1, "already_resolved": MANY - 1}
    (row,) = stored(db, "audit_log")
    assert row["detail"]["evidence"] == EVIDENCE
