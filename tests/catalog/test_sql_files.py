"""The files of sql/: what CONVENTIONS.md asks of each."""

import re
from pathlib import Path

import pytest

SQL = Path(__file__).resolve().parents[2] / "sql"
MANIFEST = [line for line in (SQL / "manifest.txt").read_text().splitlines() if line and not line.startswith("#")]
FILES = sorted(str(path.relative_to(SQL)) for path in SQL.rglob("*.sql"))
LISTED = [name for name in FILES if name != "roles.sql"]
MODULES = [name for name in LISTED if "/" in name]
# One file a format: what reads it stands together.
FORMATS = {"formats/adk.sql", "formats/anthropic.sql", "formats/openai_chat.sql", "formats/openai_responses.sql"}
ROLES = "durable_(owner|engine|steward|janitor)"
CODES = [
    line.split()[0] for line in (SQL / "errcodes.txt").read_text().splitlines() if line and not line.startswith("#")
]
# Raised by the migration code, not by sql/.
ELSEWHERE = {"55W06", "55W07"}


def text(name: str) -> str:
    return (SQL / name).read_text()


def without_comments(name: str) -> str:
    return re.sub(r"^\s*--.*$|\s--\s.*$", "", text(name), flags=re.MULTILINE)


def test_the_manifest_lists_every_file_once() -> None:
    assert sorted(MANIFEST) == LISTED
    assert MANIFEST[0] == "schema.sql"
    assert MANIFEST[-1] == "schema_seal.sql"


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_short_and_says_first_what_it_is_for(name: str) -> None:
    lines = text(name).splitlines()
    header = next(number for number, line in enumerate(lines) if not line.startswith("-- "))
    assert 1 <= header <= 4
    assert len(lines) <= 200
    assert max(map(len, (line for line in lines if not _is_prose(line)))) <= 200


def _is_prose(line: str) -> bool:
    return line.startswith("'") or " = '" in line or " = format(" in line or "btrim(" in line


@pytest.mark.parametrize("name", LISTED)
def test_a_file_says_first_who_is_to_own_what_it_makes(name: str) -> None:
    first = re.sub(r"^--.*\n", "", text(name), flags=re.MULTILINE).lstrip()
    assert re.match(rf"set local role {ROLES};", first)


@pytest.mark.parametrize("name", [name for name in MODULES if name not in FORMATS])
def test_a_file_holds_one_object_of_its_name(name: str) -> None:
    made = re.findall(
        r"^create (?:or replace )?(function|table|type|domain|view) durable\.(\w+)", text(name), flags=re.MULTILINE
    )
    if name.endswith("_policies.sql"):
        assert made == []
    else:
        assert [what for _, what in made] == [Path(name).stem]


@pytest.mark.parametrize("name", FILES)
def test_a_literal_has_no_backslash(name: str) -> None:
    """standard_conforming_strings, which any caller may switch off, would change what it means."""
    for literal in re.findall(r"'(?:[^']|'')*'", without_comments(name)):
        if "\\" in literal:
            # U& literals stand in parsed bodies only, where no later setting reaches.
            assert "U&'" in text(name)
            assert "language sql" in text(name)
            assert "plpgsql" not in text(name)


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_none_of_the_forbidden_words(name: str) -> None:
    body = without_comments(name).lower()
    for pattern in (
        r"when others",
        r"[^<>!:]=\s*null\b(?!\s*,)",
        r"p0001",
        r"\bcascade\b",
        r"create (or replace )?(materialized )?view",
        r"raise (notice|warning|info|log|debug)",
        r"\bset_config\(",
    ):
        if name == "roles.sql" and "set_config" in pattern:
            continue
        assert not re.search(pattern, body), pattern


def test_every_sqlstate_is_in_the_registry_and_raised() -> None:
    raised = {code for name in FILES for code in re.findall(r"errcode = '(\w{5})'", text(name))}
    assert raised - set(CODES) == set()
    assert set(CODES) - raised == ELSEWHERE
    assert len(CODES) == len(set(CODES))


@pytest.mark.parametrize("name", FILES)
def test_a_raise_has_its_parts(name: str) -> None:
    for statement in re.findall(r"raise exception.*?;\n", without_comments(name), flags=re.DOTALL):
        for part in ("errcode = ", "message = ", "hint = ", "schema = "):
            assert part in statement, statement


@pytest.mark.parametrize("name", FILES)
def test_every_sqlstate_in_a_comment_is_in_the_registry(name: str) -> None:
    assert set(re.findall(r"\b\d{2}W\d{2}\b", text(name))) <= set(CODES)


@pytest.mark.parametrize("name", MODULES)
def test_a_function_is_revoked_from_public_where_it_is_made(name: str) -> None:
    made = re.findall(r"create or replace function durable\.(\w+)", text(name))
    revoked = re.findall(r"revoke all on function\s+durable\.(\w+)\([^;]*\)\s+from public;", text(name))
    assert made == revoked
