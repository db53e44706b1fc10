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
    arguments: str = ""


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
            raise SystemExit(f"migrations/drop_list.py doesn't know how to undo: create {kind} {match['name']}")
        arguments = _arguments(bare[match.end() :]) if kind in {"function", "procedure", "aggregate"} else ""
        found.append(Made(kind, match["name"], arguments))
    return found


def tables_of(texts: Iterable[str]) -> list[str]:
    return [made.name for text in texts for made in made_by(text) if made.kind == "table"]


def drops(texts: Iterable[str]) -> str:
    """DROP statements for all that the files make, last first."""
    all_made = list(dict.fromkeys(made for text in texts for made in made_by(text)))
    names = Counter(made.name for made in all_made)
    lines = []
    for made in reversed(all_made):
        overloaded = made.kind == "function" and names[made.name] > 1
        lines.append(f"drop {made.kind} {made.name}{f'({_types(made.arguments)})' if overloaded else ''};\n")
    return "".join(lines)


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


def _types(arguments: str) -> str:
    parts, depth, current = [], 0, ""
    for char in arguments:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += char
    parts.append(current)
    types = []
    for part in parts:
        words = re.split(r"\s+default\s+|\s*:?=\s*", part.strip(), maxsplit=1)[0].split()
        if words and words[0] != "out":
            types.append(" ".join(words[2:] if words[0] in {"inout", "variadic", "in"} else words[1:]))
    return ", ".join(types)
