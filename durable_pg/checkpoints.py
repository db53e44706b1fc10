"""Old checkpoints in a newer program: functions that bring a state from one schema version to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from durable_pg.errors import CheckpointNewer, CheckpointUpgradeMissing

__all__ = ["CheckpointUpgrades", "checkpoint_upgrade"]

Upgrade = Callable[[Any], Any]
F = TypeVar("F", bound=Upgrade)


class CheckpointUpgrades:
    """The upgrades of one program. Calling it registers one.

        @checkpoint_upgrade(from_version=2)
        def add_currency(state):
            return {**state, "currency": "EUR"}

    `version`: the one that the program saves when no upgrade leads to a higher one.
    """

    def __init__(self, version: int = 1) -> None:
        self._least = version
        self._upgrades: dict[int, Upgrade] = {}

    @property
    def version(self) -> int:
        """The schema version that this program saves and understands."""
        return max([self._least, *(version + 1 for version in self._upgrades)])

    def __call__(self, *, from_version: int) -> Callable[[F], F]:
        """Register a function that takes a state of `from_version` and returns one of the next version.

        Raises ValueError when there is another one already.
        """
        if from_version < 1:
            raise ValueError(f"from_version is {from_version!r}; it is a schema version, 1 or more")

        def register(function: F) -> F:
            other = self._upgrades.get(from_version)
            if other is not None and _name(other) != _name(function):
                raise ValueError(f"{_name(other)} upgrades from version {from_version} already")
            self._upgrades[from_version] = function
            return function

        return register

    def upgraded(self, state: Any, schema_version: int) -> Any:
        """Return the state as this program knows it.

        Raises CheckpointNewer for a version beyond this program's, CheckpointUpgradeMissing where the chain has a gap.
        """
        if schema_version > self.version:
            raise CheckpointNewer(
                f"the checkpoint has schema version {schema_version}, this program knows {self.version}",
                hint="Resume the run with the program that saved it, or a newer one.",
                schema_version=schema_version,
                known=self.version,
            )
        # Looked for before any is called: half way is nowhere.
        for version in range(schema_version, self.version):
            if version not in self._upgrades:
                raise CheckpointUpgradeMissing(
                    f"no upgrade leads from schema version {version} to {version + 1}",
                    detail=f"the checkpoint has version {schema_version}, this program knows {self.version}",
                    hint=f"Register one: @checkpoint_upgrade(from_version={version}).",
                    schema_version=schema_version,
                    from_version=version,
                )
        for version in range(schema_version, self.version):
            state = self._upgrades[version](state)
        return state


def _name(function: Upgrade) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', function)}"


checkpoint_upgrade = CheckpointUpgrades()
