"""The calls about runs; see calls.py."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from durable_pg._client import parameters as given
from durable_pg._client.calls import Call, Nobody, Who, listing, looking, named, writing
from durable_pg.types import ReapedRuns, ResumableRun, Run, RunOutcome, Verdict


@named
def start_run(
    who: Who,
    session: object,
    invocation_id: str,
    *,
    trigger: str,
    input: Any,  # noqa: A002  # the parameter's name in SQL
    worker: str | None,
    lease: timedelta,
    max_attempts: int | None,
) -> Call[RunOutcome]:
    parameters = {
        "session_uid": given.session_uid(session),
        "invocation_id": given.identifier("invocation_id", invocation_id),
        "trigger": given.identifier("trigger", trigger),
        "input": given.optional_json("input", input),
        "worker": given.optional_identifier("worker", worker),
        "lease": given.span("lease", lease),
        "max_attempts": given.optional_integer("max_attempts", max_attempts),
    }
    # Sent twice, the second answer would be busy, and nobody would execute the run.
    return writing("start_run", who, parameters, RunOutcome, repeatable=False)


@named
def renew_lease(who: Who, run: object, *, lease: timedelta, attempt: int | None) -> Call[RunOutcome]:
    parameters = {
        "run_uid": given.run_uid(run),
        "attempt": given.token(run, attempt),
        "lease": given.span("lease", lease),
    }
    return writing("renew_lease", who, parameters, RunOutcome, repeatable=True)


@named
def interrupt_run(who: Who, run: object, *, error: Any, attempt: int | None) -> Call[RunOutcome]:
    parameters = {
        "run_uid": given.run_uid(run),
        "attempt": given.token(run, attempt),
        "error": given.optional_json("error", error),
    }
    return writing("interrupt_run", who, parameters, RunOutcome, repeatable=True)


@named
def cancel_run(who: Who, run: object, reason: str) -> Call[RunOutcome]:
    parameters = {"run_uid": given.run_uid(run), "reason": given.text("reason", reason)}
    return writing("cancel_run", who, parameters, RunOutcome, repeatable=True)


@named
def settle_run(
    who: Who,
    run: object,
    status: str,
    *,
    result: Any,
    error: Any,
    tools_executed: Sequence[str] | None,
    attempt: int | None,
) -> Call[RunOutcome]:
    parameters = {
        "run_uid": given.run_uid(run),
        "attempt": given.token(run, attempt),
        "status": given.text("status", status),
        "result": given.optional_json("result", result),
        "error": given.optional_json("error", error),
        "tools_executed": given.optional_names("tools_executed", tools_executed),
    }
    return writing("settle_run", who, parameters, RunOutcome, repeatable=True)


@named
def list_runs(who: Who, session: object) -> Call[list[Run]]:
    return listing("list_runs", who, {"session_uid": given.optional_session_uid(session)}, Run)


@named
def retry_verdict(who: Who, run: object) -> Call[Verdict]:
    return looking("retry_verdict", who, {"run_uid": given.run_uid(run)}, Verdict)


@named
def replay_verdict(who: Who, run: object) -> Call[Verdict]:
    return looking("replay_verdict", who, {"run_uid": given.run_uid(run)}, Verdict)


@named
def list_resumable(nobody: Nobody, max_runs: int) -> Call[list[ResumableRun]]:
    parameters = {"max_runs": given.integer("max_runs", max_runs)}
    return listing("list_resumable", nobody, parameters, ResumableRun)


@named
def reap_runs(nobody: Nobody, max_runs: int) -> Call[ReapedRuns]:
    parameters = {"max_runs": given.integer("max_runs", max_runs)}
    # Sent twice, the second answer would not count what the first one did.
    return writing("reap_runs", nobody, parameters, ReapedRuns, repeatable=False)
