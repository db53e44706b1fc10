# Generated from _async/calls/runs.py by tools/async_to_sync.py: change that.
"""What one user may do with runs. One method a function of the SQL interface."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from durable_pg._sync.calls.caller import Caller
from durable_pg._wire import values as given
from durable_pg._wire.statements import Who, listing, looking, refusals_of, writing
from durable_pg.types import AnyRun, AnySession, FinalStatus, RunOutcome, RunRow, Verdict

# What the functions take when nothing is said.
LEASE = timedelta(minutes=5)


class Runs(Caller[Who]):
    """The calls about runs. run() of the client makes most of them by itself."""

    def start_run(
        self,
        session: AnySession,
        invocation_id: str,
        *,
        trigger: str = "user",
        input: Any = None,  # noqa: A002  # the parameter's name in SQL
        worker: str | None = None,
        lease: timedelta = LEASE,
        max_attempts: int | None = None,
    ) -> RunOutcome:
        """Start the run of an invocation, or take it up: go on when outcome is started or resumed, else stop.

        `worker`: who holds the lease, for people to read. `lease`: after so long without renew_lease() the run may be
        taken by another worker. `max_attempts`: how often it may be tried before it is settled as failed. `input`: of a
        resumed run it may be left out.

        Never sent twice by itself: told ConnectionLost, the run may be this worker's without its knowing, and is busy
        until the lease is over. Raises IdentifierInvalid (22W01), JsonNotStorable (22W02), ArgumentInvalid (22W03),
        RunInputDiffers (23W07), SessionNotFound (42W04), SessionClosed (55W01).
        """
        with refusals_of("start_run", self._who):
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
        return self._fetch(writing("start_run", self._who, parameters, RunOutcome, repeatable=False))

    def renew_lease(self, run: AnyRun, *, lease: timedelta = LEASE, attempt: int | None = None) -> RunOutcome:
        """Hold a run, and the effects that its attempt has begun, for so long from now; outcome renewed.

        Raises ArgumentInvalid (22W03), RunNotFound (42W05), RunSettled (55W03), LeaseLost (55W04).
        """
        with refusals_of("renew_lease", self._who):
            parameters = {
                "run_uid": given.run_uid(run),
                "attempt": given.token(run, attempt),
                "lease": given.span("lease", lease),
            }
        return self._fetch(writing("renew_lease", self._who, parameters, RunOutcome, repeatable=True))

    def interrupt_run(self, run: AnyRun, *, error: Any = None, attempt: int | None = None) -> RunOutcome:
        """Give a run back that is not done, so that the next start_run resumes it.

        Outcome interrupted, already_interrupted, or settled (as failed) when it was the last of max_attempts. What the
        attempt has begun and not finished becomes unverified. Raises JsonNotStorable (22W02), RunNotFound (42W05),
        RunSettled (55W03), LeaseLost (55W04), IsolationRefused (55W05).
        """
        with refusals_of("interrupt_run", self._who):
            parameters = {
                "run_uid": given.run_uid(run),
                "attempt": given.token(run, attempt),
                "error": given.optional_json("error", error),
            }
        return self._fetch(writing("interrupt_run", self._who, parameters, RunOutcome, repeatable=True))

    def cancel_run(self, run: AnyRun, reason: str) -> RunOutcome:
        """Call a run off, whoever holds it; outcome settled, or already_settled when it was cancelled before.

        An operator may call off those of its tenant, which leaves an audit row.

        Raises ArgumentInvalid (22W03), RunNotFound (42W05), RunSettled (55W03), IsolationRefused (55W05).
        """
        with refusals_of("cancel_run", self._who):
            parameters = {"run_uid": given.run_uid(run), "reason": given.text("reason", reason)}
        return self._fetch(writing("cancel_run", self._who, parameters, RunOutcome, repeatable=True))

    def settle_run(
        self,
        run: AnyRun,
        status: FinalStatus,
        *,
        result: Any = None,
        error: Any = None,
        tools_executed: Sequence[str] | None = None,
        attempt: int | None = None,
    ) -> RunOutcome:
        """End a run for good; outcome settled, or already_settled for an equal repeat.

        `attempt`: the one that holds the run; taken from the RunOutcome of start_run when not given. `tools_executed`:
        derived from the record when not given.

        Raises JsonNotStorable (22W02), ArgumentInvalid (22W03), WriteOnce (23W02), ToolsIncomplete (23W08),
        RunNotFound (42W05), RunSettled (55W03), LeaseLost (55W04), IsolationRefused (55W05).
        """
        with refusals_of("settle_run", self._who):
            parameters = {
                "run_uid": given.run_uid(run),
                "attempt": given.token(run, attempt),
                "status": given.text("status", status),
                "result": given.optional_json("result", result),
                "error": given.optional_json("error", error),
                "tools_executed": given.optional_names("tools_executed", tools_executed),
            }
        return self._fetch(writing("settle_run", self._who, parameters, RunOutcome, repeatable=True))

    def list_runs(self, session: AnySession | None = None) -> list[RunRow]:
        """The runs, of one session or of all."""
        with refusals_of("list_runs", self._who):
            parameters = {"session_uid": given.optional_session_uid(session)}
        return self._fetch(listing("list_runs", self._who, parameters, RunRow))

    def retry_verdict(self, run: AnyRun) -> Verdict:
        """Whether the same turn may be sent to the model again: only while no tool call is recorded.

        Raises ArgumentInvalid (22W03), RunNotFound (42W05), IsolationRefused (55W05).
        """
        with refusals_of("retry_verdict", self._who):
            parameters = {"run_uid": given.run_uid(run)}
        return self._fetch(looking("retry_verdict", self._who, parameters, Verdict))

    def replay_verdict(self, run: AnyRun) -> Verdict:
        """Whether a settled run may be started anew from its input, and the tools that block it.

        Raises ArgumentInvalid (22W03), RunNotFound (42W05), IsolationRefused (55W05).
        """
        with refusals_of("replay_verdict", self._who):
            parameters = {"run_uid": given.run_uid(run)}
        return self._fetch(looking("replay_verdict", self._who, parameters, Verdict))
