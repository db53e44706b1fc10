"""A user's project: a directory with tests in it, on which pytest is run as a user would."""

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.support.cli import environment
from tests.support.servers import URL, Server

# Warnings are errors, and options that nobody knows too: the plugin must fit into a strict project.
CONFIGURATION = """
[pytest]
addopts = -p no:asyncio -p no:cacheprovider --strict-config --strict-markers -ra
filterwarnings = error
"""
# What a run makes is found by the name of the database that its tests write down.
NOTING = """
def note(durable_db):
    with open("names", "a") as file:
        file.write(durable_db.name + chr(10))
"""


@dataclass(frozen=True)
class Done:
    """What a run of pytest came to."""

    code: int
    shown: str

    def counts(self) -> dict[str, int]:
        """How many tests passed, failed and so on, by pytest's last line."""
        last = self.shown.rstrip().splitlines()[-1]
        return {kind: int(number) for number, kind in re.findall(r"(\d+) (passed|failed|errors?|skipped)", last)}


@dataclass(frozen=True)
class Project:
    """Tests in `directory`; their server is `url`, or none that was named."""

    directory: Path
    url: str | None
    variables: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Run pytest in a group of processes of its own, which a signal can reach as a terminal's Ctrl-C does."""
        kept = {name: text for name, text in environment().items() if not name.startswith("PYTEST_") and name != URL}
        if self.url is not None:
            kept[URL] = self.url
        return subprocess.Popen(
            # The order of these tests is what they are about.
            [sys.executable, "-m", "pytest", "-p", "no:randomly", *arguments],
            cwd=self.directory,
            env={**kept, "TMPDIR": str(self.directory), **self.variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def end(self, running: "subprocess.Popen[str]") -> Done:
        """Wait until a run has ended."""
        try:
            shown, _ = running.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            running.kill()
            raise
        return Done(running.returncode, shown)

    def run(self, *arguments: str) -> Done:
        return self.end(self.start(*arguments))

    def names(self) -> list[str]:
        """The databases that tests wrote down."""
        file = self.directory / "names"
        return file.read_text().split() if file.exists() else []

    def directories(self) -> list[Path]:
        """Where runs of this project meet, while there are any."""
        return sorted(self.directory.glob("durable_pytest_*"))


def left_on(server: Server, names: list[str]) -> list[str]:
    """Databases and logins of the runs that made databases of these names."""
    assert names, "no test wrote down its database"
    query = """
        select datname::text from pg_database where datname ~ %(of)s
        union all select rolname::text from pg_roles where rolname ~ %(of)s
    """
    runs = {re.match(r"durable_pytest_\w{8}", name)[0] for name in names}  # type: ignore[index]  # else it is a failure
    with psycopg.connect(server.url(server.maintenance_dbname)) as root:
        return [name for run in runs for (name,) in root.execute(query, {"of": f"^{run}_"})]
