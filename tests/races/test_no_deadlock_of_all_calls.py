"""Session, then run, then effect: all calls of leases, ledger and checkpoints mixed at random, and none deadlocks."""

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from typing import Any
from uuid import UUID

import psycopg

from tests.support.calls import (
    EVIDENCE,
    append,
    ask_for,
    begin,
    call,
    call_all,
    events,
    finish,
    interrupt,
    open_session,
    record,
    resolve,
    said,
    save,
    start,
)
from tests.support.harness import Connection, connections, wait_until_blocked
from tests.support.rented import Rented, stored

WORKERS = 6
CALLS_EACH = 150
SESSIONS = 3
# What another caller's luck may answer; a deadlock (40P01) is not among them.
HARMLESS = {"23W02", "23W10", "23W11", "42W05", "42W07", "55W03", "55W04", "55W09", "55W10"}


@dataclass
class Worker:
    """One connection of the app that does anything to any of the runs, each call in a transaction of its own."""

    app: Connection
    sessions: list[UUID]
    chance: random.Random
    told: Counter[str] = field(default_factory=Counter)
    begun: list[str] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)
    run: UUID | None = None
    attempt: int | None = None
    invocation: str = "inv-0"
    session: UUID | None = None
    effect: UUID | None = None
    step: int = 0

    def take(self) -> str:
        self.session, self.invocation = self.chance.choice(self.sessions), f"inv-{self.chance.randrange(2)}"
        lease = self.chance.choice(["100 milliseconds", "1 second"])
        told = ask_for(self.app, self.session, self.invocation, lease=lease)
        self.run, self.attempt, self.step = told["run_uid"], told["attempt"] or 1, 0
        return str(told["outcome"])

    def begin(self) -> str:
        key: dict[str, Any] = {"step": self.chance.randrange(3)}
        if self.chance.random() < 0.6:
            key = {"intent": f"refund:{self.chance.randrange(6)}", "scope": self.chance.choice(["user", "tenant"])}
        told = begin(self.app, self.given_run(), self.attempt, **key)
        self.effect = told["effect_uid"]
        if told["outcome"] == "execute":
            self.begun.append(told["idempotency_key"])
        return str(told["outcome"])

    def finish(self) -> str:
        status = self.chance.choice(["succeeded", "failed", "unverified"])
        return str(finish(self.app, self.given_effect(), status, attempt=self.attempt)["outcome"])

    def checkpoint(self) -> str:
        self.step += 1
        state = {"n": self.chance.randrange(2)}
        return str(save(self.app, self.given_run(), self.step, self.attempt, state=state)["outcome"])

    def record(self) -> str:
        self.step += 1
        finished = [{"effect_uid": self.effect, "status": "succeeded"}] if self.effect else []
        said_now = [{"author": "agent", "content": said("step"), "state_delta": {"app:n": 1, "user:n": 1}}]
        given = {"events": said_now, "finished": finished, "state": {"n": 1}}
        return str(record(self.app, self.given_run(), self.step, self.attempt, **given)["outcome"])

    def append(self) -> str:
        session, invocation = self.session or self.sessions[0], self.invocation
        delta = {"app:n": 2, "user:n": 2}
        return str(append(self.app, session, content=said("x"), invocation_id=invocation, attempt=self.attempt,
                          state_delta=delta)["outcome"])  # fmt: skip

    def give_back(self) -> str:
        return str(interrupt(self.app, self.given_run(), self.attempt)["outcome"])

    def renew(self) -> str:
        return str(call(self.app, "renew_lease", run_uid=self.run, attempt=self.attempt, lease="1 second")["outcome"])

    def read(self) -> str:
        self.given_run()
        call(self.app, "retry_verdict", run_uid=self.run)
        call_all(self.app, "list_effects", run_uid=self.run)
        call_all(self.app, "load_checkpoint", run_uid=self.run)
        return "read"

    def resolve(self) -> str:
        status = self.chance.choice(["succeeded", "failed"])
        return str(resolve(self.app, self.given_effect(), status, evidence={**EVIDENCE, "by": "app"})["outcome"])

    def given_run(self) -> UUID:
        if self.run is None:
            self.take()
        assert self.run is not None
        return self.run

    def given_effect(self) -> UUID:
        if self.effect is None:
            self.begin()
        assert self.effect is not None
        return self.effect

    def one_call(self) -> str:
        acts: tuple[Callable[[], str], ...] = (
            *(self.take, self.take, self.begin, self.begin, self.begin, self.finish, self.finish, self.checkpoint),
            *(self.record, self.append, self.give_back, self.renew, self.read, self.resolve),
        )
        return self.chance.choice(acts)()


def attended(act: Callable[[], str], connection: Connection, told: Counter[str]) -> bool:
    """Do it in a transaction of its own, and count what it was told; False when it was refused."""
    try:
        answer = act()
        connection.commit()
    except psycopg.Error as error:
        if error.sqlstate not in HARMLESS:
            raise
        answer = str(error.sqlstate)
        connection.rollback()
        told[answer] += 1
        return False
    told[answer] += 1
    return True


def work(db: Rented, worker: Worker, together: Barrier) -> None:
    together.wait()
    for _ in range(CALLS_EACH):
        db.act_as(worker.app)
        # What was begun and rolled back was not executed: a tool is called after the commit.
        if attended(worker.one_call, worker.app, worker.told):
            worker.executed += worker.begun
        worker.begun.clear()


def sweep(maintainer: Connection, together: Barrier) -> None:
    told: Counter[str] = Counter()
    together.wait()
    for _ in range(CALLS_EACH):
        attended(lambda: f"{call(maintainer, 'reap_runs')['runs'] > 0}", maintainer, told)
        attended(lambda: f"{len(call_all(maintainer, 'list_resumable')) > 0}", maintainer, told)


def operate(db: Rented, operator: Connection, together: Barrier) -> None:
    chance, told = random.Random(99), Counter[str]()

    def resolve_one() -> str:
        open_ones = call_all(operator, "list_effects", status="unverified")
        return str(resolve(operator, chance.choice(open_ones)["effect_uid"], "failed")["outcome"]) if open_ones else ""

    def cancel_one() -> str:
        runs = call_all(operator, "list_runs")
        given = {"run_uid": chance.choice(runs)["run_uid"], "reason": "called off"} if runs else None
        return str(call(operator, "cancel_run", **given)["outcome"]) if given else ""

    together.wait()
    for _ in range(CALLS_EACH // 3):
        db.act_as(operator, user="on-call")
        attended(cancel_one if chance.random() < 0.1 else resolve_one, operator, told)


def test_all_calls_of_everybody_mixed_never_deadlock_and_no_key_is_executed_twice(db: Rented) -> None:
    with db.as_app() as app:
        sessions = [open_session(app, f"s{place}") for place in range(SESSIONS)]
    together = Barrier(WORKERS + 2, timeout=30)
    with (
        connections(db, WORKERS) as apps,
        connections(db, 1, "maintainer") as (maintainer,),
        connections(db, 1, "operator") as (operator,),
        ThreadPoolExecutor(WORKERS + 2) as threads,
    ):
        workers = [Worker(app, sessions, random.Random(number)) for number, app in enumerate(apps)]
        everybody = [
            *(threads.submit(work, db, worker, together) for worker in workers),
            threads.submit(sweep, maintainer, together),
            threads.submit(operate, db, operator, together),
        ]
        for one in everybody:
            one.result()

    told = sum((worker.told for worker in workers), Counter[str]())
    # They did meet: runs changed hands, and effects were answered from what others had done.
    assert {"resumed", "busy", "execute", "recorded", "55W04"} <= told.keys(), told
    executed = Counter(key for worker in workers for key in worker.executed)
    assert max(executed.values()) == 1
    assert set(executed) == {row["idempotency_key"] for row in stored(db, "effects")}
    with db.as_app() as app:
        for session in sessions:
            assert call(app, "verify_session", session_uid=session)["intact"]
            assert [event["seq"] for event in events(app, session)] == list(range(1, len(events(app, session)) + 1))


def test_an_effect_and_its_event_in_one_transaction_do_not_deadlock_with_a_second_worker(db: Rented) -> None:
    with db.as_app() as app:
        session = open_session(app)
        run = start(app, session)
    with connections(db, 2) as (writer, asker), ThreadPoolExecutor(1) as threads:
        for app in (writer, asker):
            db.act_as(app)
        effect = begin(writer, run)["effect_uid"]
        asking = threads.submit(ask_for, asker, session)
        wait_until_blocked(db, asker, by=writer)
        finish(writer, effect)
        append(writer, session, content=said("done"), invocation_id="inv-1", attempt=1)
        writer.commit()
        assert asking.result(timeout=20)["outcome"] == "busy"
