"""A worker, as a process, that does what it is told over its standard input, one call a line: it can be stalled."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Json

from tests.support.calls import call


@dataclass
class Worker:
    """A process with a connection of its own."""

    process: subprocess.Popen[str]

    def call(self, function: str, **arguments: Any) -> dict[str, Any]:
        """Let it make a call; return the row as JSON, or {"sqlstate": ...} when that was refused."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([function, arguments], default=str) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def stall(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def wake(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)


@contextmanager
def worker(url: str, tenant: str) -> Iterator[Worker]:
    """Run one until the block ends."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.cases.stalling", url, tenant],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Worker(process)
        finally:
            process.kill()


def answer(app: psycopg.Connection[Any], tenant: str, function: str, arguments: dict[str, Any]) -> dict[str, Any]:
    values = {name: Json(given) if name == "events" else given for name, given in arguments.items()}
    try:
        with app.transaction():
            app.execute("select durable.act_as(%s, 'U1')", (tenant,))
            return dict(call(app, function, **values))
    except psycopg.Error as error:
        return {"sqlstate": error.sqlstate}


def main(url: str, tenant: str) -> None:
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as app:
        for line in sys.stdin:
            print(json.dumps(answer(app, tenant, *json.loads(line)), default=str), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
