"""make generate: everything that is written out of something else, in the order in which one needs the other.

`--check` writes nothing and exits 1 when something is out of date.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tools.freeze import why_the_baseline_stays
from tools.frozen_tree import Tree

ROOT = Path(__file__).resolve().parent.parent


def steps(*, check: bool) -> list[tuple[str, list[str]]]:
    """What each step writes, and its command."""
    given = ["--check"] if check else []
    # Once a database may have been made by the baseline it is never written anew, and make revision goes on from it.
    frozen = ["--check"] if check or why_the_baseline_stays(Tree(ROOT)) else ["--baseline"]
    return [
        ("durable_pg/errors.py", ["-m", "tools.generate_errors", *given]),
        ("the client's sync twins", ["-m", "tools.async_to_sync", *given]),
        ("migrations/versions, CHAIN", ["-m", "tools.freeze", *frozen]),
        ("the expected catalog", ["-m", "tools.generate_catalog", *given]),
        ("durable_pg/tables.py", ["-m", "tools.generate_tables", *given]),
        ("docs: errors, functions, states, commands", ["-m", "tools.generate_pages", *given]),
    ]


def main() -> int:
    """Run all steps, in checks also those after one that fails; returns the exit code."""
    check = "--check" in sys.argv[1:]
    failed = False
    for what, command in steps(check=check):
        started = time.monotonic()
        done = subprocess.run([sys.executable, *command], cwd=ROOT, check=False)  # noqa: S603
        failed |= done.returncode != 0
        sys.stdout.write(f"{'failed: ' if done.returncode else ''}{what} ({time.monotonic() - started:.1f} s)\n")
        if failed and not check:
            break
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
