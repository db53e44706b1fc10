"""What one user may do with checkpoints and steps. One method a function of the SQL interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from durable_pg._async.calls.caller import AsyncCaller
from durable_pg._wire import values as given
from durable_pg._wire.statements import Who, finding, refusals_of, writing
from durable_pg.types import AnyRun, Checkpoint, FinishedEffect, NewEvent, RecordedStep


class AsyncCheckpoints(AsyncCaller[Who]):
    """The calls about checkpoints. checkpoint() and record_step() of a run make them by itself."""

    async def save_checkpoint(
        self,
        run: AnyRun,
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
        with refusals_of("save_checkpoint", self._who):
            parameters = {
                "run_uid": given.run_uid(run),
                "attempt": given.token(run, attempt),
                "step": given.integer("step", step),
                "state": given.optional_json("state", state),
                "schema_version": given.integer("schema_version", schema_version),
            }
        return await self._fetch(writing("save_checkpoint", self._who, parameters, Checkpoint, repeatable=True))

    async def load_checkpoint(self, run: AnyRun) -> Checkpoint | None:
        """The newest checkpoint of a run, as it was saved. Raises ArgumentInvalid (22W03), RunNotFound (42W05)."""
        with refusals_of("load_checkpoint", self._who):
            parameters = {"run_uid": given.run_uid(run)}
        return await self._fetch(finding("load_checkpoint", self._who, parameters, Checkpoint))

    async def record_step(
        self,
        run: AnyRun,
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
        with refusals_of("record_step", self._who):
            new = given.new_events(events)
            parameters = {
                "run_uid": given.run_uid(run),
                "attempt": given.token(run, attempt),
                "step": given.integer("step", step),
                "events": given.optional_json("events", new),
                "finished": given.optional_json("finished", given.finished_effects(finished)),
                "state": given.optional_json("state", state),
                "schema_version": given.integer("schema_version", schema_version),
            }
        # An event without a name would be appended again.
        repeatable = all(event.get("event_id") for event in new)
        return await self._fetch(writing("record_step", self._who, parameters, RecordedStep, repeatable=repeatable))
