# Generated from _async/calls/maintenance.py by tools/async_to_sync.py: change that.
"""What concerns all tenants. One method a function of the SQL interface."""

from __future__ import annotations

from durable_pg._sync.calls.caller import Caller
from durable_pg._wire import values as given
from durable_pg._wire.statements import Nobody, listing, refusals_of, writing
from durable_pg.types import ReapedRuns, ResumableRun


class Maintainer(Caller[Nobody]):
    """What dispatchers and cron jobs do, for all tenants and without seeing content. Made by maintainer()."""

    __module__ = "durable_pg"

    def list_resumable(self, max_runs: int = 100) -> list[ResumableRun]:
        """The runs that nobody executes, longest waiting first: whose, where, and since when.

        A worker acts as that user and takes the run up with run() or start_run(). Raises ArgumentInvalid (22W03).
        """
        with refusals_of("list_resumable", self._who):
            parameters = {"max_runs": given.integer("max_runs", max_runs)}
        return self._fetch(listing("list_resumable", self._who, parameters, ResumableRun))

    def reap_runs(self, max_runs: int = 100) -> ReapedRuns:
        """Mark runs whose lease is over as interrupted, and what they had begun as unverified; say how many.

        Nothing depends on it: whoever looks reads leases by the clock. Raises ArgumentInvalid (22W03).
        """
        with refusals_of("reap_runs", self._who):
            parameters = {"max_runs": given.integer("max_runs", max_runs)}
        # Sent twice, the second answer would not count what the first one did.
        return self._fetch(writing("reap_runs", self._who, parameters, ReapedRuns, repeatable=False))
