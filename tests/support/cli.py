"""The command line, run within this process: what a test says is as for a real one, and a second is saved each time.

Signals, terminals, pipes that close, completion, servers and what is loaded need a real process: durable_pg_process().
tests/cli/test_in_process.py compares the two.
"""

import io
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from durable_pg.cli import app

ROOT = Path(__file__).resolve().parents[2]
LIBPQ = ("DURABLE_PG_URL", "DATABASE_URL", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGSERVICE")


def environment(root: Path = ROOT, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without a database in it, and with the package of `root`."""
    kept = {name: text for name, text in os.environ.items() if name not in LIBPQ}
    return {**kept, "PYTHONPATH": str(root), **(extra or {})}


def durable_pg(*arguments: str, extra: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, in this process."""
    with _apart(environment(extra=extra)) as (out, err):
        code = _run(arguments)
        out.flush()
        err.flush()
        told = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]  # ours
    return subprocess.CompletedProcess(["durable-pg", *arguments], code, *told)


def durable_pg_process(
    *arguments: str, root: Path = ROOT, extra: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "durable_pg", *arguments],
        env=environment(root, extra),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tempfile.gettempdir(),
    )


def _run(arguments: tuple[str, ...]) -> int:
    try:
        app(args=list(arguments), prog_name="durable-pg")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)  # noqa: T201  # as Python does at the end of a process
            return 1
        return end.code or 0
    except BaseException:  # noqa: BLE001  # a process would end with it
        traceback.print_exc()
        return 1
    raise AssertionError("a command ends with an exit code")


@contextmanager
def _apart(variables: Mapping[str, str]) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Give a command what a process has of its own: environment, working directory, and standard streams."""
    before, directory, streams = dict(os.environ), Path.cwd(), (sys.stdin, sys.stdout, sys.stderr)
    # As a process that no terminal is attached to, whose locale is UTF-8.
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors) for errors in ("strict", "backslashreplace")
    )
    os.environ.clear()
    os.environ.update(variables)
    try:
        os.chdir(tempfile.gettempdir())
        with Path(os.devnull).open(encoding="utf-8") as nothing:
            sys.stdin, sys.stdout, sys.stderr = nothing, out, err
            yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(before)
