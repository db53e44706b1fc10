"""The DROP statements that undo sql/ files, read out of their CREATE statements: last first, no CASCADE."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

_CREATE = re.compile(
    r"^create\s+(?:or\s+replace\s+)?(?:unlogged\s+)?(?P<kind>constraint\s+trigger|unique\s+index|[a-z]+)\s+"
    r"(?:if\s+not\s+exists\s+)?(?P<name>[a-z_0-9.]+)",
    re.MULTILINE,
)
# These go with their table.
_WITH_TABLE = {"trigger", "constraint trigger", "index", "unique index", "policy", "rule"}
_DROPPABLE = {"table", "type", "domain", "sequence", "function", "procedure", "aggregate", "view", "collation"}
# schema.sql's own: the version table outlives every downgrade.
_KEPT = {"durable.alembic_version"}


@dataclass(frozen=True)
class Made:
    """An object that a file makes."""

    kind: str
    name: str


def without_bodies(text: str) -> str:
    """The text without comments and dollar-quoted bodies: what is left are the statements themselves."""
    text = re.sub(r"(\$[a-z_]*\$).*?\1", "''", text, flags=re.DOTALL)
    return re.sub(r"--[^\n]*", "", text)


def made_by(text: str) -> list[Made]:
    """What the file's CREATE statements make, in their order."""
    bare = without_bodies(text)
    found = []
    for match in _CREATE.finditer(bare):
        kind = re.sub(r"\s+", " ", match["kind"])
        if kind in _WITH_TABLE or match["name"] in _KEPT:
            continue
        if kind not in _DROPPABLE or not match["name"].startswith("durable."):
            raise SystemExit(f"tools/drop_list.py doesn't know how to undo: create {kind} {match['name']}")
        found.append(Made(kind, match["name"]))
    return found


def tables_of(texts: Iterable[str]) -> list[str]:
    """The tables that the files make."""
    return [made.name for text in texts for made in made_by(text) if made.kind == "table"]


def drops(texts: Iterable[str]) -> str:
    """DROP statements for all that the files make, last first. Names are unique, so a function needs no parameters."""
    made = [made for text in texts for made in made_by(text)]
    twice = [name for name, count in Counter(one.name for one in made).items() if count > 1]
    if twice:
        raise SystemExit(f"names are unique, and these are made twice: {', '.join(twice)}")
    return "".join(f"drop {one.kind} {one.name};\n" for one in reversed(made))


def signatures(text: str) -> dict[str, str]:
    """For each function of the file, what CREATE OR REPLACE can't change: parameters and result."""
    bare = without_bodies(text)
    found = {}
    for match in _CREATE.finditer(bare):
        if match["kind"] == "function":
            rest = bare[match.end() :]
            arguments = _arguments(rest)
            result = re.match(
                r"\s*returns\s+(.*?)\s+language\b", rest[len(arguments) + rest.index("(") + 2 :], re.DOTALL
            )
            shape = f"({arguments}) returns {result[1] if result else ''}"
            found[match["name"]] = re.sub(r"\s+", " ", shape)
    return found


def _arguments(rest: str) -> str:
    start = rest.index("(") + 1
    depth = 1
    for place in range(start, len(rest)):
        depth += {"(": 1, ")": -1}.get(rest[place], 0)
        if depth == 0:
            return rest[start:place]
    raise SystemExit("a parameter list is not closed")
