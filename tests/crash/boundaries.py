"""A process whose children work one run each and die at a boundary that they are told: before or after a call.

`python -m tests.crash.boundaries '{...}'` (the settings of an agent) reads lines `INVOCATION NUMBER` and answers each
with `died`, or with `lived` when the run was over before that many boundaries.
"""

import json
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from durable_pg import Durable
from durable_pg._sync import transport
from tests.crash.agent import Journal, Settings, Worker
from tests.crash.shop import Shop


class Boundary:
    """Counts the calls of the agent to the database and to the provider, before and after each."""

    def __init__(self, deadly: int) -> None:
        self._left = deadly

    def around(self, owner: type, method: str) -> None:
        """Count whatever goes through this method."""
        original: Callable[..., Any] = getattr(owner, method)

        def counted(*arguments: Any, **named: Any) -> Any:
            self._pass()
            answer = original(*arguments, **named)
            self._pass()
            return answer

        setattr(owner, method, counted)

    def _pass(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # it renews the lease, whenever
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def work(settings: Settings, invocation: str, deadly: int) -> None:
    """Work this run as an agent does, and die at that boundary if there are as many."""
    with (
        Durable.from_url(settings.app_url, max_size=2) as database,
        Durable.from_url(settings.maintainer_url, max_size=1) as dispatcher,
    ):
        worker = Worker(settings, database, dispatcher, Journal(settings.journal, settings.name), random.Random(0))
        found = dispatcher.maintainer().list_resumable(max_runs=1000)
        (chosen,) = (run for run in found if run.invocation_id == invocation)
        boundary = Boundary(deadly)
        boundary.around(transport.OnPool, "fetch")
        boundary.around(Shop, "_request")
        worker.execute(chosen)


def main(settings: Settings) -> None:
    for line in sys.stdin:
        invocation, number = line.split()
        child = os.fork()
        if child == 0:
            work(settings, invocation, int(number))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        assert killed or status == 0, f"the child has failed: {status}"
        print("died" if killed else "lived", flush=True)  # noqa: T201  # whoever tells it the numbers reads this


if __name__ == "__main__":
    main(Settings(**json.loads(sys.argv[1])))
