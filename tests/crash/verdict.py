"""What must hold when the killing is over, and again when people have looked into what they were asked about."""

from collections import Counter
from itertools import groupby, pairwise
from uuid import UUID

from tests.crash.books import Books


def nothing_happened_twice(books: Books) -> None:
    twice = {intent: count for intent, count in books.executed().items() if count > 1}
    assert not twice, f"executed more than once: {twice}"
    assert set(books.executed()) <= set(books.intents())


def the_ledger_knows_every_execution(books: Books) -> None:
    """What the provider has done is recorded as done, or as something that nobody knows; never as failed."""
    status = {effect["idempotency_key"]: effect["status"] for effect in books.effects}
    lost = [line for line in books.executions if status.get(line["key"]) not in ("succeeded", "unverified")]
    assert not lost, f"executed and not in the ledger: {lost}"
    done = {line["key"] for line in books.executions}
    invented = [effect for effect in books.effects if effect["status"] == "succeeded"]
    invented = [effect for effect in invented if effect["idempotency_key"] not in done]
    assert not invented, f"recorded and never executed: {invented}"
    assert {effect["status"] for effect in books.effects} <= {"succeeded", "failed", "unverified"}


def every_run_is_settled_or_waits_for_a_person(books: Books) -> None:
    waiting = books.unverified()
    for run in books.runs:
        if run["status"] == "succeeded":
            assert run["run_uid"] not in waiting, f"settled over an unverified effect: {run}"
        else:
            assert run["status"] == "interrupted", f"nobody works on it, nobody is asked: {run}"
            assert run["run_uid"] in waiting, f"lost: {run}"
    assert len(books.runs) == len(books.orders)


def everything_was_done_or_declined(books: Books) -> None:
    """Nothing is lost either: each intent of a settled run was executed once, or certainly declined."""
    executed = books.executed()
    results = {run["invocation_id"]: run["result"] for run in books.runs}
    for order in books.orders:
        assert results[order] is not None, f"{order} has no result"
        for goal, number in results[order]["done"].items():
            assert executed[f"{goal}:{order}"] == (0 if number is None else 1), (order, goal, number)
    assert sum(len(result["done"]) for result in results.values()) == len(books.intents())


def no_stale_attempt_wrote_anything(books: Books) -> None:
    """After the first word of an attempt there is nothing of an earlier one."""
    begins: dict[tuple[UUID, int], object] = {}
    runs = {(run["session_uid"], run["invocation_id"]): run for run in books.runs}
    for _, log in groupby(books.events, key=lambda event: event["session_uid"]):
        said = [event for event in log if event["attempt"] is not None]
        for before, after in pairwise(said):
            assert before["attempt"] <= after["attempt"], f"a stale attempt wrote {after}"
        for event in said:
            run = runs[event["session_uid"], event["invocation_id"]]["run_uid"]
            begins.setdefault((run, event["attempt"]), event["recorded_at"])
    for _, kept in groupby(books.checkpoints, key=lambda checkpoint: checkpoint["run_uid"]):
        for before, after in pairwise(kept):
            assert before["attempt"] <= after["attempt"], f"a stale attempt saved {after}"
    for effect in books.effects:
        later = begins.get((effect["run_uid"], effect["attempt"] + 1))
        assert later is None or effect["first_begun_at"] < later, f"a stale attempt began {effect}"


def one_process_had_each_attempt(books: Books) -> None:
    holders: dict[tuple[str, int], set[int]] = {}
    for line in books.journal:
        if line["what"] in ("claimed", "calling"):
            holders.setdefault((line["run"], line["attempt"]), set()).add(line["pid"])
    shared = {attempt: pids for attempt, pids in holders.items() if len(pids) > 1}
    assert not shared, f"attempts that two processes had: {shared}"


def a_key_was_handed_out_once(books: Books, *, dedupes: bool) -> None:
    """Unless the provider said that it dedupes, nobody is told to call it with a key that was handed out before."""
    calling = Counter((line["key"], line["goal"]) for line in books.journal if line["what"] == "calling")
    again = [key for (key, goal), count in calling.items() if count > 1 and not (dedupes and goal == "booking")]
    assert not again, f"handed out twice: {again}"


def every_log_is_intact(books: Books) -> None:
    assert len(books.chains) == len(books.orders)
    for chain in books.chains:
        assert chain["intact"], chain
        assert chain["events_checked"] == chain["last_seq"], chain
