"""Compares schema durable of a live database with the one this package makes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

from sqlalchemy.engine import Connection

from durable_pg.migrate.connection import connect
from durable_pg.migrate.database import may_become, rows, settings, unreadable
from durable_pg.migrate.errors import BadRequest
from durable_pg.migrate.roles import ALL

_HERE = resources.files("durable_pg.migrate.catalog")


class Fact(NamedTuple):
    """One attribute of one object, such as ('trigger', 'events._100_append_only', 'mode', 'always')."""

    kind: str
    object: str
    attribute: str
    value: str


@dataclass(frozen=True)
class Difference:
    """What a live database has otherwise than the package: `missing`, `extra` or `changed`."""

    what: str
    kind: str
    object: str
    attribute: str
    expected: str | None
    actual: str | None

    def __str__(self) -> str:
        if self.attribute == "":
            return f"{self.what} {self.kind} {self.object}"
        name = f"{self.what} {self.kind} {self.object}: {self.attribute}"
        if self.what == "changed":
            return f"{name}: expected {_short(self.expected)}, found {_short(self.actual)}"
        return f"{name} {_short(self.expected or self.actual)}"

    def as_dict(self) -> dict[str, str | None]:
        """Return the fields, for JSON."""
        return asdict(self)


def _short(value: str | None) -> str:
    text = " ".join((value or "nothing").split())
    return text if len(text) <= 160 else text[:157] + "..."


def read(target: str | Connection | None = None) -> list[Fact]:
    """The normalised catalog of schema durable. Works as the migration login and as an auditor; writes nothing."""
    with connect(target) as connection:
        if isinstance(target, Connection):
            return _read(connection)
        with connection.begin():
            return _read(connection)


def check(target: str | Connection | None = None, *, guard_owners: Iterable[str] = ()) -> list[Difference]:
    """The differences between a live database and this package; none when they agree.

    `guard_owners`: roles which put our guards on tables of their own. USAGE on the schema and EXECUTE on the functions
    which that takes, granted to one of them without grant option, are no differences; anything else still is.
    """
    accepted = _guard_grants(guard_owners)
    return [difference for difference in compare(expected(), read(target)) if _grant(difference) not in accepted]


# What protect_append_only, _rows, _write_once and _frozen take, called by the owner of a table of its own.
GUARD_FUNCTIONS = (
    "check_guardable(regclass,text[])",
    "protect_append_only(regclass)",
    "protect_frozen(regclass,text[])",
    "protect_rows(regclass)",
    "protect_write_once(regclass,text[])",
    "put_column_guard(regclass,text,text,text,text[])",
    "refuse_frozen()",
    "refuse_rewrite()",
    "refuse_truncate()",
    "refuse_write_once()",
)


def _guard_grants(roles: Iterable[str]) -> set[tuple[str, str, str]]:
    """The grants of guard owners, as _grant() reads them."""
    accepted = set()
    for role in roles:
        if role in {*ALL, "public", ""}:
            raise BadRequest(
                f"{role or 'a role without a name'} can't own guards: their owner is a role of your own",
                hint="Name the role that owns the tables you protect.",
            )
        # As the catalog query writes it: quoted unless it is a plain word.
        name = role if re.fullmatch("[a-z_][a-z0-9_]*", role) else '"' + role.replace('"', '""') + '"'
        accepted.add(("schema grant", "durable", f"{name} usage"))
        accepted.update(("grant", function, f"{name} execute") for function in GUARD_FUNCTIONS)
    return accepted


def _grant(difference: Difference) -> tuple[str, str, str] | None:
    if (difference.what, difference.actual) != ("extra", "granted"):
        return None
    return difference.kind, difference.object, difference.attribute


def compare(expected_facts: Iterable[Fact], actual_facts: Iterable[Fact]) -> list[Difference]:
    """Missing, extra and changed facts. An object that is missing or extra as a whole is one difference."""
    wanted = {fact[:3]: fact.value for fact in expected_facts}
    found = {fact[:3]: fact.value for fact in actual_facts}
    wanted_objects, found_objects = ({key[:2] for key in keys} for keys in (wanted, found))
    result: dict[tuple[str, ...], Difference] = {}
    for key in sorted(wanted.keys() | found.keys()):
        kind, name, attribute = key
        before, now = wanted.get(key), found.get(key)
        if before == now:
            continue
        whole = kind not in _GRANTS and ((kind, name) in wanted_objects) != ((kind, name) in found_objects)
        what = "missing" if now is None else "extra" if before is None else "changed"
        if whole:
            result.setdefault((kind, name), Difference(what, kind, name, "", None, None))
        else:
            what = "changed" if kind not in _GRANTS else what
            result[key] = Difference(what, kind, name, attribute, before, now)
    return list(result.values())


# Kinds whose attributes are facts of their own, not properties of one object.
_GRANTS = frozenset({"grant", "schema grant", "default grant", "membership", "login", "transition"})


@cache
def expected() -> tuple[Fact, ...]:
    """The catalog this package makes."""
    text = _HERE.joinpath("expected_catalog.json").read_text(encoding="utf-8")
    return tuple(Fact(*row) for row in json.loads(text))


def as_json(facts: Iterable[Fact]) -> str:
    """One fact a line, sorted: a change of the schema reads as a diff."""
    lines = [json.dumps(list(fact), ensure_ascii=False) for fact in sorted(facts)]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _read(connection: Connection) -> list[Fact]:
    queries = [_HERE.joinpath(name).read_text(encoding="utf-8") for name in ("catalog.sql", "surroundings.sql")]
    reading = {
        "search_path": "pg_catalog, pg_temp",
        "quote_all_identifiers": "off",
        "standard_conforming_strings": "on",
    }
    with settings(connection, reading):
        facts = [
            Fact(*(str(value) for value in row))
            for query in queries
            for row in connection.exec_driver_sql(query, execution_options={"no_parameters": True}).fetchall()
        ]
        facts += _transitions(connection, {fact.object for fact in facts if fact.kind == "table"})
    return sorted(facts)


def _transitions(connection: Connection, tables: set[str]) -> list[Fact]:
    if "transitions" not in tables:
        return []
    sql = "select entity, from_status, to_status, meaning from durable.transitions"
    role = _reader(connection)
    with settings(connection, {"role": role} if role else {}):
        found = rows(connection, sql)
    return [
        Fact("transition", entity, f"{start or '(new)'} -> {end}", meaning) for entity, start, end, meaning in found
    ]


def _reader(connection: Connection) -> str | None:
    allowed = rows(
        connection,
        "select has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')"
        " from pg_catalog.pg_class as c inner join pg_catalog.pg_namespace as n on n.oid = c.relnamespace"
        " where n.nspname = 'durable' and c.relname = 'transitions'",
    )
    if allowed[0][0]:
        return None
    for role in ("durable_owner", "durable_auditor"):
        if may_become(connection, role):
            return role
    raise unreadable(connection, "durable.transitions")
