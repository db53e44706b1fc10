"""Write durable_pg/tables.py from a database that was just migrated. `--check` only compares."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Inspector, inspect
from sqlalchemy.dialects import postgresql

from durable_pg._embedded.database import temporary_database
from durable_pg._embedded.logins import MIGRATOR
from durable_pg.migrate.connection import connect

FILE = Path(__file__).resolve().parent.parent / "durable_pg" / "tables.py"
SCHEMA = "durable"
# Alembic's own; nobody queries it.
OTHERS = {"alembic_version"}
# As SQLAlchemy names them: from its generic types, or from those of Postgres.
GENERIC = {
    "BOOLEAN": "Boolean",
    "BYTEA": "LargeBinary",
    "INTEGER": "Integer",
    "INTERVAL": "Interval",
    "SMALLINT": "SmallInteger",
    "TEXT": "Text",
    "UUID": "Uuid",
}
HEAD = '''\
"""The tables of schema durable as SQLAlchemy Core tables, for people who query. Written by tools/generate_tables.py.

Read only: no runtime login may INSERT, UPDATE or DELETE; rows are written by the functions. Row-level security applies:
an application's login first calls `durable.act_as` in the same transaction, or every query raises 42W01.

JSON columns hold the stored form, in which NUL and lone surrogates are escaped. `func.durable.unescape_json(column)`
gives what was sent:

    with engine.begin() as connection:
        connection.execute(select(func.durable.act_as("acme", "user-7")))
        rows = connection.execute(select(events.c.seq, func.durable.unescape_json(events.c.content)).limit(10))

Domains appear as their base type. CHECK constraints, defaults, triggers and policies are the database's alone.
"""

from __future__ import annotations

'''


def main() -> int:
    """Write or compare the file; returns the exit code."""
    with temporary_database() as database, connect(database.url(MIGRATOR)) as connection:
        text = formatted(module(inspect(connection)))
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text, encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != text:
        sys.stderr.write("out of date: durable_pg/tables.py; run python tools/generate_tables.py\n")
        return 1
    return 0


def module(live: Inspector) -> str:
    """The text of the module, not yet laid out."""
    # A table comes after those that it refers to.
    ordered = [name for name, _ in live.get_sorted_table_and_fkc_names(schema=SCHEMA) if name not in {None, *OTHERS}]
    tables = "\n\n".join(table(live, str(name)) for name in ordered)
    exported = ", ".join(f'"{name}"' for name in sorted(["metadata", *map(str, ordered)]))
    body = f'__all__ = [{exported},]\n\nmetadata = MetaData(schema="{SCHEMA}")\n\n{tables}\n'
    return HEAD + imports(body) + "\n" + body


def imports(body: str) -> str:
    """Import what the tables are made of."""
    postgres = sorted(name for name in ("ARRAY", "JSONB", "TIMESTAMP") if re.search(rf"\b{name}\b", body))
    made_of = ("Column", "ForeignKeyConstraint", "Index", "MetaData", "PrimaryKeyConstraint", "Table")
    others = ("UniqueConstraint", "text", *GENERIC.values())
    generic = sorted(name for name in (*made_of, *others) if re.search(rf"(?<!\"){name}\b[(),]", body))
    # As isort does it: classes before functions.
    generic.sort(key=str.islower)
    return (
        f"from sqlalchemy import ({', '.join(generic)},)\n"
        f"from sqlalchemy.dialects.postgresql import {', '.join(postgres)}\n"
    )


def table(live: Inspector, name: str) -> str:
    """One table: its columns in their order, then its keys, then its indexes."""
    parts = [*columns(live, name), *keys(live, name), *indexes(live, name)]
    return f'{name} = Table("{name}", metadata, {", ".join(parts)},)'


def columns(live: Inspector, name: str) -> Iterator[str]:
    """Columns in their order."""
    for column in live.get_columns(name, schema=SCHEMA):
        nullable = "" if column["nullable"] else ", nullable=False"
        yield f'Column("{column["name"]}", {type_name(column["type"])}{nullable})'


def type_name(found: Any) -> str:
    """How a type is written; a domain is its base type."""
    if isinstance(found, postgresql.DOMAIN):
        return type_name(found.data_type)
    if isinstance(found, postgresql.ARRAY):
        return f"ARRAY({type_name(found.item_type)})"
    if isinstance(found, postgresql.TIMESTAMP):
        return f"TIMESTAMP(timezone={found.timezone})"
    name = type(found).__name__
    return GENERIC.get(name, name)


def keys(live: Inspector, name: str) -> Iterator[str]:
    """The primary key, then what is unique, then what refers to other tables."""
    primary = live.get_pk_constraint(name, schema=SCHEMA)
    yield f'PrimaryKeyConstraint({quoted(primary["constrained_columns"])}, name="{primary["name"]}")'
    for unique in sorted(live.get_unique_constraints(name, schema=SCHEMA), key=by_name):
        yield f'UniqueConstraint({quoted(unique["column_names"])}, name="{unique["name"]}")'
    for foreign in sorted(live.get_foreign_keys(name, schema=SCHEMA), key=by_name):
        there = [f"{SCHEMA}.{foreign['referred_table']}.{column}" for column in foreign["referred_columns"]]
        ours = quoted(foreign["constrained_columns"])
        yield f'ForeignKeyConstraint([{ours}], [{quoted(there)}], name="{foreign["name"]}")'


def indexes(live: Inspector, name: str) -> Iterator[str]:
    """Indexes that no key brings along."""
    for index in sorted(live.get_indexes(name, schema=SCHEMA), key=by_name):
        if "duplicates_constraint" in index:
            continue
        unique = ", unique=True" if index["unique"] else ""
        condition = index.get("dialect_options", {}).get("postgresql_where")
        where = f', postgresql_where=text("{plain(condition)}")' if condition else ""
        yield f'Index("{index["name"]}", {quoted(index["column_names"])}{unique}{where})'


def by_name(found: Any) -> str:
    """Sort by name: the catalog's own order says nothing."""
    return str(found["name"])


def quoted(names: Any) -> str:
    """Names as arguments."""
    return ", ".join(f'"{name}"' for name in names)


def plain(condition: str) -> str:
    """An index's condition as people write it: without the outermost parentheses, key words in lower case."""
    condition = condition[1:-1] if condition.startswith("(") else condition
    parts = condition.split("'")
    return "'".join(part if place % 2 else part.lower() for place, part in enumerate(parts))


def formatted(text: str) -> str:
    """Lay it out as every file of the package is."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(FILE), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
