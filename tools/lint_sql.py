"""Check that sql/ is written as its CONVENTIONS.md says: one line a fault, exit code 1 when there is any."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("ground", "guards", "tables", "rules", "calls", "access")
BOOTSTRAP = "roles.sql"
LIMIT_LINES, LIMIT_COLUMNS, LIMIT_HEADER = 300, 200, 4
# Raised by the migration code, not by sql/.
RAISED_ELSEWHERE = {"55W06", "55W07"}
# Before there is a function to call.
REFUSE_ARGUMENTS_THEMSELVES = {BOOTSTRAP, "schema.sql", "ground/arguments.sql"}
FORBIDDEN = (
    r"when others",
    r"[^<>!:]=\s*null\b(?!\s*,)",
    r"p0001",
    r"\bcascade\b",
    r"create (or replace )?(materialized )?view",
    r"raise (notice|warning|info|log|debug)",
    r"\bset_config\(",
)

_MADE = re.compile(
    r"^create (?:or replace )?(function|table|type|domain|view) (?:if not exists )?durable\.(\w+)", re.MULTILINE
)
_LITERAL = re.compile(r"'(?:[^']|'')*'")


@dataclass(frozen=True)
class File:
    """A file of sql/, by its path in it."""

    name: str
    text: str

    @property
    def floor(self) -> str:
        """The first folder; empty for what stands above the floors."""
        return self.name.rpartition("/")[0].partition("/")[0]

    @property
    def stem(self) -> str:
        """The name without folders and ending."""
        return Path(self.name).stem

    @cached_property
    def bare(self) -> str:
        """The text without comments."""
        return re.sub(r"^\s*--.*$|\s--\s.*$", "", self.text, flags=re.MULTILINE)

    @cached_property
    def made(self) -> list[tuple[str, str]]:
        """Kind and name of what the file makes, in order."""
        return [(match[1], match[2]) for match in _MADE.finditer(self.text)]

    def makes(self, *kinds: str) -> bool:
        """Whether the file makes these kinds of objects and no others."""
        return {kind for kind, _ in self.made} == set(kinds)


@dataclass(frozen=True)
class Tree:
    """The files of sql/, in any order, with the lists beside them."""

    files: list[File]
    manifest: list[str]
    codes: list[str]

    @classmethod
    def read(cls, sql: Path) -> Tree:
        """Read sql/ as it is now."""
        files = [File(str(path.relative_to(sql)), path.read_text("utf-8")) for path in sorted(sql.rglob("*.sql"))]
        codes = [line.split()[0] for line in _entries(sql / "errcodes.txt")]
        return cls(files, _entries(sql / "manifest.txt"), codes)


def _entries(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]


# Each check of a file says what is wrong with it.


def header(file: File) -> Iterator[str]:
    """A file says first what it is for."""
    lines = file.text.splitlines()
    length = next((number for number, line in enumerate(lines) if not line.startswith("-- ")), len(lines))
    if not 1 <= length <= LIMIT_HEADER:
        yield f"begins with {length} lines of comment, not with 1 to {LIMIT_HEADER}"


def length(file: File) -> Iterator[str]:
    """A file is short, and so are its lines, but for texts that people read."""
    lines = file.text.splitlines()
    if len(lines) > LIMIT_LINES:
        yield f"has {len(lines)} lines, the limit is {LIMIT_LINES}"
    for number, line in enumerate(lines, 1):
        prose = line.lstrip().startswith("'") or " = '" in line or " = format(" in line
        if len(line) > LIMIT_COLUMNS and not prose:
            yield f"line {number} has {len(line)} columns, the limit is {LIMIT_COLUMNS}"


def owner(file: File) -> Iterator[str]:
    """A file says before all else who is to own what it makes."""
    first = re.sub(r"^--.*\n", "", file.text, flags=re.MULTILINE).lstrip()
    if file.name != BOOTSTRAP and not re.match(r"set local role durable_(owner|engine|steward|janitor);", first):
        yield "does not begin with set local role and the owner of what it makes"


def place(file: File) -> Iterator[str]:
    """What a file makes is what its floor and its own name promise."""
    promises = {
        "": ("no function", "function" not in dict(file.made)),
        "calls": (f"function {file.stem} first", file.makes("function") and file.made[0][1] == file.stem),
        "tables": (f"table {file.stem} only", file.made == [("table", file.stem)]),
        "access": ("policies only", file.makes() and "create policy" in file.text),
    }
    if file.name == "tables/types.sql":
        promises["tables"] = ("types only", file.makes("type"))
    if "/" in file.name and file.floor not in FLOORS:
        yield f"stands on no floor; there are {', '.join(FLOORS)}"
    promise, kept = promises.get(file.floor, ("something", file.made != []))
    if not kept:
        yield f"has to make: {promise}"


def apart(file: File) -> Iterator[str]:
    """What only a hand can migrate stands apart from functions, which are simply made again."""
    once = [kind for kind, _ in file.made if kind != "function"]
    once += re.findall(r"^create (policy|trigger|index|unique index)\b", file.text, re.MULTILINE)
    if once and ("function" in dict(file.made)):
        yield f"makes functions beside a {once[0]}, which a migration alters by hand"


def backslash(file: File) -> Iterator[str]:
    """Any caller may switch standard_conforming_strings off, which changes what a backslash in a literal means."""
    for statement in re.split(r"^(?=create )", file.bare, flags=re.MULTILINE):
        for literal in _LITERAL.findall(statement):
            # U& literals stand in parsed bodies only, where no later setting reaches.
            parsed = "U&'" in statement and "language sql" in statement and "plpgsql" not in statement
            if "\\" in literal and not parsed:
                yield f"has a backslash in a literal: {literal[:60]}"


def forbidden(file: File) -> Iterator[str]:
    """Words that CONVENTIONS.md rules out."""
    body = file.bare.lower()
    for pattern in FORBIDDEN:
        if file.name == BOOTSTRAP and "set_config" in pattern:
            continue
        if found := re.search(pattern, body):
            yield f"has a forbidden {found[0].strip()!r}"


def raises(file: File) -> Iterator[str]:
    """A refusal has a code, says what is wrong and what to do, and where it comes from."""
    for statement in re.findall(r"raise exception.*?;\n", file.bare, re.DOTALL):
        for part in ("errcode = ", "message = ", "hint = ", "schema = "):
            if part not in statement:
                yield f"raises without {part}... in: {statement[:80]!r}"


def arguments(file: File) -> Iterator[str]:
    """Whatever is wrong with an argument is said in one form."""
    if "errcode = '22W03'" in file.text and file.name not in REFUSE_ARGUMENTS_THEMSELVES:
        yield "raises 22W03 itself; durable.refuse_argument does"


def closed(file: File) -> Iterator[str]:
    """A function has its comment, and PUBLIC loses it, before the next one is made; and it can be made again."""
    if re.search(r"^create function", file.text, re.MULTILINE):
        yield "creates a function without: or replace"
    for statements in re.split(r"^(?=create or replace function )", file.text, flags=re.MULTILINE)[1:]:
        (function,) = re.findall(r"^create or replace function durable\.(\w+)", statements, re.MULTILINE)
        for wanted in (
            f"comment on function durable.{function} is",
            f"revoke all on function durable.{function} from public;",
        ):
            if wanted not in statements:
                yield f"makes the function {function} without: {wanted}"
        for grantee in re.findall(
            r"^(?:comment|revoke|grant)[^;']*? on function durable\.(\w+)", statements, re.MULTILINE
        ):
            if grantee != function:
                yield f"speaks of {grantee} behind the function {function}"


def signature(file: File) -> Iterator[str]:
    """Names are unique, so a function is named without its parameters everywhere but where it is made."""
    for found in re.findall(
        r"^((?:comment|revoke|grant)[^;']*? on function\s+durable\.\w+)\s*\(", file.text, re.MULTILINE
    ):
        yield f"repeats parameters: {found}(...)"


def helpers(file: File) -> Iterator[str]:
    """A function that is not the first of its file has its purpose above it, as the first has in the header."""
    lines = file.text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("create or replace function ")]
    for number in starts[1:]:
        if not lines[number - 1].startswith("-- "):
            yield f"says nothing above {lines[number]}"


# Each check of the tree says what is wrong with which file.


def manifest(tree: Tree) -> Iterator[tuple[str, str]]:
    """The manifest lists every file once, floor after floor."""
    listed = [file.name for file in tree.files if file.name != BOOTSTRAP]
    for name in sorted({*tree.manifest, *listed}):
        if tree.manifest.count(name) != 1 or name not in listed:
            yield "manifest.txt", f"lists {name} {tree.manifest.count(name)} times, and there is {listed.count(name)}"
    ends = (*tree.manifest[:2], *tree.manifest[-1:])
    if ends != ("schema.sql", "schema_open.sql", "schema_seal.sql"):
        yield "manifest.txt", "does not begin with schema.sql and schema_open.sql, or not end with schema_seal.sql"
    floors = [name.partition("/")[0] for name in tree.manifest if "/" in name]
    if [*dict.fromkeys(floors)] != [floor for floor in FLOORS if floor in floors] or floors != sorted(
        floors, key=[*FLOORS, *floors].index
    ):
        yield "manifest.txt", f"does not keep the order of the floors: {', '.join(FLOORS)}"


def uses(tree: Tree) -> Iterator[tuple[str, str]]:
    """A file uses what stands before it: so no two use each other, and no floor one below it."""
    places = {name: number for number, name in enumerate(tree.manifest)}
    files = [file for file in tree.files if file.name in places]
    maker = {what: file.name for file in files for _, what in file.made}
    for file in files:
        for what in sorted(set(re.findall(r"\bdurable\.(\w+)", _LITERAL.sub("''", file.bare)))):
            if what not in maker:
                yield file.name, f"uses durable.{what}, which no file makes"
            elif places[maker[what]] > places[file.name]:
                yield file.name, f"uses durable.{what} of {maker[what]}, which stands below it"


def unique(tree: Tree) -> Iterator[tuple[str, str]]:
    """A name is made once: nothing else tells functions apart where their parameters are left out."""
    seen: dict[str, str] = {}
    for file in tree.files:
        for _, what in file.made:
            if what in seen:
                yield file.name, f"makes durable.{what}, as {seen[what]} does"
            seen[what] = file.name


def sqlstates(tree: Tree) -> Iterator[tuple[str, str]]:
    """Every SQLSTATE that is raised or spoken of is registered, and every registered one is raised."""
    raised = set()
    for file in tree.files:
        raised |= (here := set(re.findall(r"errcode = '(\w{5})'", file.text)))
        for code in sorted((here | set(re.findall(r"\b\d{2}W\d{2}\b", file.text))) - set(tree.codes)):
            yield file.name, f"names {code}, which errcodes.txt does not"
    for code in sorted(set(tree.codes) - raised - RAISED_ELSEWHERE):
        yield "errcodes.txt", f"has {code}, which nothing in sql/ raises"
    for code in sorted(raised & RAISED_ELSEWHERE):
        yield "errcodes.txt", f"has {code}, which the migration code was to raise and not sql/"
    for code in sorted({code for code in tree.codes if tree.codes.count(code) > 1}):
        yield "errcodes.txt", f"has {code} more than once"


FILE_CHECKS: list[Callable[[File], Iterator[str]]] = [
    header, length, owner, place, apart, backslash, forbidden, raises, arguments, closed, signature, helpers
]  # fmt: skip
TREE_CHECKS: list[Callable[[Tree], Iterator[tuple[str, str]]]] = [manifest, uses, unique, sqlstates]


def faults(tree: Tree) -> list[str]:
    """All that is wrong, as check, file and fault."""
    found = [
        f"{check.__name__}: {file.name} {fault}"
        for check in FILE_CHECKS
        for file in tree.files
        for fault in check(file)
    ]
    return found + [f"{check.__name__}: {name} {fault}" for check in TREE_CHECKS for name, fault in check(tree)]


def main() -> int:
    """Print the faults of sql/; returns the exit code."""
    found = faults(Tree.read(ROOT / "sql"))
    sys.stdout.write("".join(f"{fault}\n" for fault in found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
