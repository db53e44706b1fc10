"""A call has one name everywhere: a file of sql/calls, a statement, a method, a test file, a section of the docs."""

import re
from pathlib import Path

from durable_pg import Identity, Maintainer
from durable_pg._wire.statements import QUERIES

ROOT = Path(__file__).resolve().parents[2]
CALLS = set(QUERIES)


def test_a_call_is_a_file_of_sql() -> None:
    assert {path.stem for path in (ROOT / "sql/calls").glob("*.sql")} == CALLS


def test_a_call_is_a_method() -> None:
    assert [name for name in sorted(CALLS) if not hasattr(Identity, name) and not hasattr(Maintainer, name)] == []


def test_a_call_has_a_test_file() -> None:
    files = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    assert sorted(CALLS - files) == []


def test_a_call_has_a_section_of_the_docs() -> None:
    sections = set(re.findall(r"^#+ `?(\w+)", (ROOT / "docs/functions.md").read_text("utf-8"), re.MULTILINE))
    assert sorted(CALLS - sections) == []
