"""Follows the journal of the workers while they work: who is at which run, and which runs wait for a person."""

import json
from dataclasses import dataclass, field
from pathlib import Path

# After any other note a worker has no run in hand.
AT_WORK = {"claimed", "calling", "called", "recorded", "verified", "diverged", "declined"}
# An attempt has found out that it can't go on before somebody has looked, and has given the run back.
WAITS = "waits for a person"


@dataclass
class Watch:
    """What the journal says so far."""

    journal: Path
    _read: int = 0
    _run: dict[int, str] = field(default_factory=dict)
    _holder: dict[str, int] = field(default_factory=dict)
    _at_work: dict[int, bool] = field(default_factory=dict)
    _waiting: set[tuple[str, int]] = field(default_factory=set)

    def run_of(self, pid: int) -> str | None:
        """Return the run that a process is at."""
        self._follow()
        return self._run.get(pid) if self._at_work.get(pid) else None

    def holder_of(self, run: str) -> int:
        """Return the process that has taken a run last."""
        self._follow()
        return self._holder[run]

    def waits_for_a_person(self, run: str, attempt: int) -> bool:
        """Tell whether this attempt has said so. No worker takes the run then, until somebody has looked."""
        self._follow()
        return (run, attempt) in self._waiting

    def _follow(self) -> None:
        if not self.journal.exists():
            return
        with self.journal.open("rb") as journal:
            journal.seek(self._read)
            for written in journal:
                if not written.endswith(b"\n"):  # it is being written
                    break
                self._read += len(written)
                line = json.loads(written)
                self._at_work[line["pid"]] = line["what"] in AT_WORK
                if line["what"] == "claimed":
                    self._run[line["pid"]] = line["run"]
                    self._holder[line["run"]] = line["pid"]
                elif line["what"] == WAITS:
                    self._waiting.add((line["run"], line["attempt"]))
