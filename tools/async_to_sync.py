"""Write the synchronous twins of every `*_async.py`: the client, how it reaches the database, and their tests.

`--check` only compares. Needs ruff, for the layout of what is written.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("durable_pg", "durable_pg/_client", "tests/client")
# In this order: what is said differently first, then what follows a rule.
REPLACEMENTS = (
    (r"`async with` \(or `with`\)", "`with` (or `async with`)"),
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
    (r"(?<=\w)_async\b", ""),
)
HEAD = "# Generated from {source} by tools/async_to_sync.py: change that.\n"


def sources() -> list[Path]:
    """Return the files that have a twin."""
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*_async.py"))


def twin(source: Path) -> Path:
    """Return where the twin of a file is."""
    return source.with_name(source.name.replace("_async.py", ".py"))


def converted(source: Path) -> str:
    """Return the text of a file's twin."""
    text = source.read_text("utf-8")
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    return _laid_out(HEAD.format(source=source.name) + text, twin(source))


def _laid_out(text: str, path: Path) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    name = ["--stdin-filename", str(path)]
    for command in (["check", "--quiet", "--fix-only", "--select", "I,SIM117"], ["format", "--quiet"]):
        run = subprocess.run(  # noqa: S603  # our own command
            [*ruff, *command, *name, "-"], input=text, capture_output=True, text=True, check=True, cwd=ROOT
        )
        text = run.stdout
    return text


def main() -> int:
    """Write or compare the twins; returns the exit code."""
    stale = []
    for source in sources():
        text, path = converted(source), twin(source)
        if "--check" not in sys.argv[1:]:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
    if stale:
        sys.stderr.write(f"out of date: {', '.join(stale)}; run python tools/async_to_sync.py\n")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
