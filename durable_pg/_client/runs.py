# Generated from runs_async.py by tools/async_to_sync.py: change that.
"""What one user may do with runs, and what a maintainer may. One method a function of the SQL interface."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from durable_pg._client import calls, io, run_calls
from durable_pg._client.sessions import Caller
from durable_pg.types import FinalStatus, ReapedRuns, ResumableRun, Run, RunOutcome, Session, Verdict

# What the functions take when nothing is said.
LEASE = timedelta(minutes=5)


class Runs(Caller):
    """The calls about runs. run() of the client makes most of them by itself."""

    def start_run(
        self,
        session: Session | UUID | str,
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
        call = run_calls.start_run(
            self._who,
            session,
            invocation_id,
            trigger=trigger,
            input=input,
            worker=worker,
            lease=lease,
            max_attempts=max_attempts,
        )
        return io.run(self._way, call)

    def renew_lease(
        self, run: RunOutcome | Run | UUID | str, *, lease: timedelta = LEASE, attempt: int | None = None
    ) -> RunOutcome:
        """Hold a run, and the effects that its attempt has begun, for so long from now; outcome renewed.

        Raises ArgumentInvalid (22W03), RunNotFound (42W05), RunSettled (55W03), LeaseLost (55W04).
        """
        return io.run(self._way, run_calls.renew_lease(self._who, run, lease=lease, attempt=attempt))

    def interrupt_run(
        self, run: RunOutcome | Run | UUID | str, *, error: Any = None, attempt: int | None = None
    ) -> RunOutcome:
        """Give a run back that is not done, so that the next start_run resumes it.

        Outcome interrupted, already_interrupted, or settled (as failed) when it was the last of max_attempts. What the
        attempt has begun and not finished becomes unverified. Raises JsonNotStorable (22W02), RunNotFound (42W05),
        RunSettled (55W03), LeaseLost (55W04), IsolationRefused (55W05).
        """
        return io.run(self._way, run_calls.interrupt_run(self._who, run, error=error, attempt=attempt))

    def cancel_run(self, run: RunOutcome | Run | UUID | str, reason: str) -> RunOutcome:
        """Call a run off, whoever holds it; outcome settled, or already_settled when it was cancelled before.

        An operator may call off those of its tenant, which leaves an audit row.

        Raises ArgumentInvalid (22W03), RunNotFound (42W05), RunSettled (55W03), IsolationRefused (55W05).
        """
        return io.run(self._way, run_calls.cancel_run(self._who, run, reason))

    def settle_run(
        self,
        run: RunOutcome | Run | UUID | str,
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
        call = run_calls.settle_run(
            self._who,
            run,
            status,
            result=result,
            error=error,
            tools_executed=tools_executed,
            attempt=attempt,
        )
        return io.run(self._way, call)

    def list_runs(self, session: Session | UUID | str | None = None) -> list[Run]:
        """The runs, of one session or of all."""
        return io.run(self._way, run_calls.list_runs(self._who, session))

    def retry_verdict(self, run: RunOutcome | Run | UUID | str) -> Verdict:
        """Whether the same turn may be sent to the model again: only while no tool call is recorded.

        Raises ArgumentInvalid (22W03), RunNotFound (42W05), IsolationRefused (55W05).
        """
        return io.run(self._way, run_calls.retry_verdict(self._who, run))

    def replay_verdict(self, run: RunOutcome | Run | UUID | str) -> Verdict:
        """Whether a settled run may be started anew from its input, and the tools that block it.

        Raises ArgumentInvalid (22W03), RunNotFound (42W05), IsolationRefused (55W05).
        """
        return io.run(self._way, run_calls.replay_verdict(self._who, run))


class Maintainer:
    """What dispatchers and cron jobs do, for all tenants and without seeing content. Made by maintainer()."""

    def __init__(self, way: io.Way) -> None:
        self._way = way
        self._nobody = calls.Nobody()

    def list_resumable(self, max_runs: int = 100) -> list[ResumableRun]:
        """The runs that nobody executes, longest waiting first: whose, where, and since when.

        A worker acts as that user and takes the run up with run() or start_run(). Raises ArgumentInvalid (22W03).
        """
        return io.run(self._way, run_calls.list_resumable(self._nobody, max_runs))

    def reap_runs(self, max_runs: int = 100) -> ReapedRuns:
        """Mark runs whose lease is over as interrupted, and what they had begun as unverified; say how many.

        Nothing depends on it: whoever looks reads leases by the clock. Raises ArgumentInvalid (22W03).
        """
        return io.run(self._way, run_calls.reap_runs(self._nobody, max_runs))
