# Generated from steps_async.py by tools/async_to_sync.py: change that.
"""What one user may do with checkpoints and steps. One method a function of the SQL interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from durable_pg._client import io, step_calls
from durable_pg._client.sessions import Caller
from durable_pg.types import Checkpoint, FinishedEffect, NewEvent, RecordedStep, Run, RunOutcome


class Steps(Caller):
    """The calls about checkpoints. checkpoint() and record_step() of a run make them by itself."""

    def save_checkpoint(
        self,
        run: RunOutcome | Run | UUID | str,
        step: int,
        state: Any,
        *,
        schema_version: int = 1,
        attempt: int | None = None,
    ) -> Checkpoint:
        """Save what the run is resumed from after this step; outcome saved, or already_saved for an equal repeat.

        The first step is 0 or 1, and none is left out. `schema_version`: of the program's state, for later upgrades.

        Raises JsonNotStorable (22W02), ArgumentInvalid (22W03), CheckpointDiffers (23W11), RunNotFound (42W05),
        RunSettled (55W03), LeaseLost (55W04), CheckpointGap (55W10).
        """
        call = step_calls.save_checkpoint(self._who, run, step, state, schema_version=schema_version, attempt=attempt)
        return io.run(self._way, call)

    def load_checkpoint(self, run: RunOutcome | Run | UUID | str) -> Checkpoint | None:
        """The newest checkpoint of a run, as it was saved. Raises ArgumentInvalid (22W03), RunNotFound (42W05)."""
        return io.run(self._way, step_calls.load_checkpoint(self._who, run))

    def record_step(
        self,
        run: RunOutcome | Run | UUID | str,
        step: int,
        *,
        events: Sequence[NewEvent] = (),
        finished: Sequence[FinishedEffect] = (),
        state: Any = None,
        schema_version: int = 1,
        attempt: int | None = None,
    ) -> RecordedStep:
        """Append events, finish effects and save a checkpoint, all of them or nothing, in one round trip.

        `events`: the parameters of append_event; `finished`: those of finish_effect. Outcome saved or already_saved,
        and recorded where no `state` is given. Sent again by itself only if every event has an event_id. Raises what
        append_event, finish_effect and save_checkpoint raise.
        """
        call = step_calls.record_step(
            self._who,
            run,
            step,
            events=events,
            finished=finished,
            state=state,
            schema_version=schema_version,
            attempt=attempt,
        )
        return io.run(self._way, call)
