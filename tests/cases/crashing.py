"""A worker, as a process, that dies in the middle of a tool call: `python -m tests.cases.crashing URL MOMENT ...`.

The tool appends a line to a file. The process is killed as the kernel kills: nothing is closed, nothing is said.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Json

from tests.support.calls import call, open_session, start

MOMENTS = ("before the tool", "after the tool", "before the commit", "after the commit")
PAY = {"tool": "pay", "intent": "k1", "args": {"to": "acct-9"}}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def work(url: str, moment: str, tenant: str, lease: str, file: str) -> None:
    with psycopg.connect(url, row_factory=dict_row) as app:
        app.execute("select durable.act_as(%s, 'U1')", (tenant,))
        run = start(app, open_session(app), worker="w-0", lease=lease)
        begun = call(app, "begin_effect", run_uid=run, attempt=1, **PAY)
        app.commit()
        assert begun["outcome"] == "execute", begun
        if moment == "before the tool":
            die()
        with Path(file).open("a") as paid:
            paid.write(f"{begun['idempotency_key']}\n")
        if moment == "after the tool":
            die()
        app.execute("select durable.act_as(%s, 'U1')", (tenant,))
        finished = {"status": "succeeded", "result": Json({"paid": True})}
        call(app, "finish_effect", effect_uid=begun["effect_uid"], attempt=1, **finished)
        if moment == "before the commit":
            die()
        app.commit()
        die()


def killed(url: str, moment: str, tenant: str, lease: str, file: Path) -> None:
    """Run the worker on a run of its own and return when it is dead."""
    assert moment in MOMENTS
    command = [sys.executable, "-m", "tests.cases.crashing", url, moment, tenant, lease, str(file)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


if __name__ == "__main__":
    work(*sys.argv[1:])
