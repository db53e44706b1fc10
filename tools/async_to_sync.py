"""Write the synchronous twins: durable_pg/_sync/ from _async/, and those tests whose waiting differs.

`--check` only compares. Needs ruff, for the layout of what is written.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "durable_pg"
TESTS = ROOT / "tests" / "client"
# Kept by hand on both sides: what waits differently.
BY_HAND = {"__init__.py", "waiting.py"}
# In this order: what is said differently first, then what follows a rule. Each must be of use somewhere.
REPLACEMENTS = (
    (r"\(of an ORM session, await its connection\(\)\)", "(of an ORM session, its connection())"),
    (r"        # SQLAlchemy's asyncio needs greenlet.*\n", ""),
    (r"sqlalchemy\.ext\.asyncio", "sqlalchemy.engine"),
    (r"pytest_asyncio\.fixture", "pytest.fixture"),
    (r"import pytest_asyncio\n", ""),
    (r"create_async_engine", "create_engine"),
    (r"asynccontextmanager", "contextmanager"),
    (r"AbstractAsyncContextManager", "AbstractContextManager"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"durable_pg\._async\b", "durable_pg._sync"),
    (r"(?<=\w)_async\b", ""),
)
HEAD = "# Generated from {source} by tools/async_to_sync.py: change that.\n"


def sources() -> dict[Path, Path]:
    """Return what is written by hand, and where its twin is."""
    client = [path for path in sorted((CLIENT / "_async").rglob("*.py")) if not _is_by_hand(path)]
    tests = sorted(TESTS.glob("*_async.py"))
    return {path: CLIENT / "_sync" / path.relative_to(CLIENT / "_async") for path in client} | {
        path: path.with_name(path.name.replace("_async.py", ".py")) for path in tests
    }


def _is_by_hand(path: Path) -> bool:
    return path.parent.name == "_async" and path.name in BY_HAND


def left_over(twins: set[Path]) -> list[Path]:
    """Return files among the twins that nothing is the source of."""
    there = [path for path in sorted((CLIENT / "_sync").rglob("*.py")) if path.relative_to(CLIENT / "_sync").parts]
    marked = [path for path in TESTS.glob("*.py") if path.read_text("utf-8").startswith(HEAD.split("{", 1)[0])]
    by_hand = {CLIENT / "_sync" / name for name in BY_HAND}
    return [path for path in (*there, *marked) if path not in twins | by_hand]


def converted(source: Path, twin: Path, used: set[str]) -> str:
    """Return the text of a file's twin; note the rules that were of use."""
    text = source.read_text("utf-8")
    for pattern, replacement in REPLACEMENTS:
        text, times = re.subn(pattern, replacement, text)
        if times:
            used.add(pattern)
    name = source.relative_to(CLIENT if source.is_relative_to(CLIENT) else TESTS)
    return _laid_out(HEAD.format(source=name) + text, twin)


def _laid_out(text: str, path: Path) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    name = ["--stdin-filename", str(path)]
    for command in (["check", "--quiet", "--fix-only", "--select", "I,SIM117,F401"], ["format", "--quiet"]):
        run = subprocess.run(  # noqa: S603  # our own command
            [*ruff, *command, *name, "-"], input=text, capture_output=True, text=True, check=True, cwd=ROOT
        )
        text = run.stdout
    return text


def main() -> int:
    """Write or compare the twins; returns the exit code."""
    twins, used = sources(), set[str]()
    faults = []
    for source, twin in twins.items():
        text = converted(source, twin, used)
        if "--check" not in sys.argv[1:]:
            twin.parent.mkdir(parents=True, exist_ok=True)
            twin.write_text(text, "utf-8")
        elif not twin.exists() or twin.read_text("utf-8") != text:
            faults.append(f"out of date: {twin.relative_to(ROOT)}; run python tools/async_to_sync.py")
    faults += [f"a twin of nothing: {path.relative_to(ROOT)}; remove it" for path in left_over(set(twins.values()))]
    faults += [f"of no use any more: the rule {rule!r}; remove it" for rule, _ in REPLACEMENTS if rule not in used]
    sys.stderr.write("".join(f"{fault}\n" for fault in faults))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
