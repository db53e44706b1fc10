"""Write the pages that repeat what sql/ and the commands say. `--check` only compares."""

import re
import sys
from pathlib import Path
from typing import NamedTuple

from tools.commands_page import commands_page

ROOT = Path(__file__).resolve().parent.parent
CLASSES = {
    "22": "Data: an argument is not what it has to be (`BadInput`; `psycopg.DataError`)",
    "23": "Integrity: what is recorded stands against it (`Conflict`; `psycopg.IntegrityError`)",
    "42": "Access: who is asking, and what there is for them (`AccessRefused`; `psycopg.ProgrammingError`)",
    "55": "State: not now, or not any more (`WrongState`; `psycopg.OperationalError`)",
}


class ErrorCode(NamedTuple):
    """One line of sql/errcodes.txt."""

    sqlstate: str
    name: str
    rule: str
    meaning: str


class Move(NamedTuple):
    """One row of durable.transitions."""

    entity: str
    from_status: str
    to_status: str
    meaning: str


def error_codes() -> list[ErrorCode]:
    """Read the registry of SQLSTATEs."""
    lines = (ROOT / "sql/errcodes.txt").read_text().splitlines()
    return [ErrorCode(*line.split(maxsplit=3)) for line in lines if line and not line.startswith("#")]


def moves() -> list[Move]:
    """Read the rows that sql/guards/transitions.sql inserts."""
    text = (ROOT / "sql/guards/transitions.sql").read_text()
    rows = re.findall(r"^\('(\w+)', '(\w*)', '(\w+)', '((?:[^']|'')*)'\)", text, re.MULTILINE)
    return [Move(*(part.replace("''", "'") for part in row)) for row in rows]


def errors_page() -> str:
    """Describe every SQLSTATE, by class."""
    page = [
        "# Errors",
        "",
        "Generated from `sql/errcodes.txt` by `tools/generate_pages.py`.",
        "",
        "Every refusal carries its own SQLSTATE, a message, DETAIL with the values, HINT with the next step, and the",
        "schema, table, column or constraint where there is one: read those and never the text. Besides these, expect",
        "Postgres's own: `42501` (a privilege that nobody gave), `40001` (a stricter isolation level met a newer row:",
        "try again). In Python each is a class of `durable_pg.errors`, and each SQLSTATE class a base of these.",
    ]
    for prefix, title in CLASSES.items():
        page += ["", f"## {title}", "", "| SQLSTATE | name | in Python | rule | meaning |", "|---|---|---|---|---|"]
        page += [
            f"| `{code.sqlstate}` | `{code.name}` | `{''.join(word.title() for word in code.name.split('_'))}` "
            f"| {'' if code.rule == '-' else f'`{code.rule}`'} | {code.meaning} |"
            for code in error_codes()
            if code.sqlstate.startswith(prefix)
        ]
    return "\n".join(page) + "\n"


def _functions() -> list[tuple[str, str, str, str, str]]:
    """Every call of the interface: name, arguments, result, comment, who may call it, in the order of installation."""
    lines = (ROOT / "sql/manifest.txt").read_text().splitlines()
    calls = [Path(line).stem for line in lines if line.startswith("calls/")]
    found = [_described("act_as", (ROOT / "sql/ground/identity.sql").read_text())]
    return found + [_described(call, (ROOT / f"sql/calls/{call}.sql").read_text()) for call in calls]


def _described(name: str, text: str) -> tuple[str, str, str, str, str]:
    head = re.search(
        rf"create or replace function durable\.{name}\((.*?)\)\n(?:returns ([^\n]+)\n)?language", text, re.DOTALL
    )
    comment = re.search(rf"comment on function durable\.{name} is\s'((?:[^']|'')*)';", text)
    callers = re.search(rf"grant execute on function durable\.{name} to\s([^;]+);", text)
    if head is None or comment is None or callers is None:
        raise LookupError(f"durable.{name} has no head, no comment or no callers")
    parameters = [part.strip() for part in re.split(r",\s+(?![^(]*\))", head[1].strip())]
    given = ", ".join(part for part in parameters if not part.startswith("out "))
    result = head[2] or "(" + ", ".join(part[4:] for part in parameters if part.startswith("out ")) + ")"
    roles = [role for role in ("app", "operator", "maintainer", "auditor") if f"durable_{role}" in callers[1]]
    return name, given, result, comment[1].replace("''", "'"), ", ".join(roles)


def _row_types() -> dict[str, str]:
    """The columns of the composite types that calls return."""
    text = (ROOT / "sql/tables/types.sql").read_text()
    types = re.findall(r"create type durable\.(\w+) as \((.*?)\n\);", text, re.DOTALL)
    return {name: ", ".join(column.split()[0] for column in body.strip().split("\n")) for name, body in types}


def functions_page() -> str:
    """Describe every call of the SQL interface."""
    page = [
        "# Functions",
        "",
        "Generated from `sql/` by `tools/generate_pages.py`. Call them with named arguments; `me` is the result of",
        "`durable.act_as(tenant_id, user_id)`, or left out after `act_as` in the same transaction. The schema holds",
        "more functions, from which these and the policies are built: they keep the same rules, but may change.",
    ]
    rows = _row_types()
    for name, arguments, result, comment, roles in _functions():
        columns = next((columns for kind, columns in rows.items() if result.endswith(f"durable.{kind}")), None)
        page += [
            "",
            f"## {name}",
            "",
            f"`durable.{name}({arguments})`",
            "",
            comment,
            "",
            f"- May be called by: {roles}",
        ]
        page += [f"- Row: `{columns}`" if columns else f"- Returns: {result}"]
    return "\n".join(page) + "\n"


def states_page() -> str:
    """Draw every status machine."""
    page = [
        "# State machines",
        "",
        "Generated from `sql/guards/transitions.sql` by `tools/generate_pages.py`. A trigger reads the same rows and",
        "refuses everything else (`23W04`), whoever asks; a status that no arrow leaves is final: its row never",
        "changes again.",
    ]
    for entity in dict.fromkeys(move.entity for move in moves()):
        page += ["", f"## {entity}", "", "```mermaid", "stateDiagram-v2"]
        own = [move for move in moves() if move.entity == entity]
        page += [f"    {move.from_status or '[*]'} --> {move.to_status}" for move in own]
        page += ["```", "", "| from | to | when |", "|---|---|---|"]
        page += [f"| {move.from_status or '(born)'} | {move.to_status} | {move.meaning} |" for move in own]
    return "\n".join(page) + "\n"


def main() -> int:
    """Write or compare the pages; returns the exit code."""
    stale = []
    for name, text in (
        ("errors.md", errors_page()),
        ("functions.md", functions_page()),
        ("state-machines.md", states_page()),
        ("commands.md", commands_page()),
    ):
        path = ROOT / "docs" / name
        if "--check" in sys.argv[1:]:
            if not path.exists() or path.read_text() != text:
                stale.append(name)
        else:
            path.write_text(text)
    if stale:
        sys.stderr.write(f"out of date: docs/{', docs/'.join(stale)}; make generate\n")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
