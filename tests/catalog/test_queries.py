"""queries.sql against the functions that are really there: every call of the interface, each argument and column."""

import dataclasses
import re
from collections.abc import Mapping
from inspect import getmembers, isfunction
from typing import Any

import pytest

from durable_pg import AsyncIdentity, AsyncMaintainer, Identity, Maintainer, types
from durable_pg._wire.statements import QUERIES, with_colons
from tests.support.harness import Database

STATEMENT = re.compile(
    r"\A-- (?P<comment>[^\n]+)\nselect (?P<columns>.+?)\nfrom durable\.(?P<function>\w+)\(\n(?P<arguments>.+)\n\)\Z",
    re.DOTALL,
)
ARGUMENT = re.compile(r"    (?P<name>\w+) => %\((?P<parameter>\w+)\)s::(?:text::)?(?P<type>[a-z\[\]]+)")
ME = "    me => durable.act_as(%(tenant_id)s::text, %(user_id)s::text)"
# About all tenants, and so without an identity.
OF_MAINTAINERS = ("list_resumable", "reap_runs")
# Built of other calls, and none of their own.
OF_CALLS = {"run", "run_once"}
TYPES = {"timestamp with time zone": "timestamptz"}
METHODS = {name: method for owner in (Identity, Maintainer) for name, method in getmembers(owner, isfunction)}


def parts(name: str) -> Mapping[str, str]:
    match = STATEMENT.match(QUERIES[name])
    assert match is not None, f"{name} is not one call of one function:\n{QUERIES[name]}"
    return match.groupdict()


def signature(db: Database, function: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return arguments and result columns of a function, with their types, domains resolved."""
    with db.connect("auditor") as auditor:
        found = auditor.execute(
            """
            with arguments as (
                select a.name, a.mode, a.type, a.place
                from pg_proc as p, unnest(p.proargnames, coalesce(p.proargmodes, array_fill('i'::"char",
                    array[p.pronargs::integer])), coalesce(p.proallargtypes, p.proargtypes::oid[]))
                    with ordinality as a (name, mode, type, place)
                where p.pronamespace = 'durable'::regnamespace and p.proname = %(function)s
                union all
                select t.attname, 't', t.atttypid, t.attnum
                from pg_proc as p
                join pg_type as r on r.oid = p.prorettype
                join pg_attribute as t on t.attrelid = r.typrelid and t.attnum > 0
                where p.pronamespace = 'durable'::regnamespace and p.proname = %(function)s
            )
            select a.name, a.mode = 'i' as given, format_type(coalesce(nullif(t.typbasetype, 0), t.oid), null) as type
            from arguments as a join pg_type as t on t.oid = a.type
            order by a.place
            """,
            {"function": function},
        ).fetchall()
    named = [(row["given"], (row["name"], TYPES.get(row["type"]) or row["type"])) for row in found]
    return [pair for given, pair in named if given], [pair for given, pair in named if not given]


def interface(db: Database) -> set[str]:
    """Return the functions that take me first and that a front role may call by itself: the interface."""
    with db.connect("auditor") as auditor:
        found = auditor.execute(
            """
            select distinct p.proname from pg_proc as p
            where p.pronamespace = 'durable'::regnamespace and p.proargnames[1] = 'me' and p.pronargs > 1
                and (
                    has_function_privilege('durable_app', p.oid, 'execute')
                    or has_function_privilege('durable_operator', p.oid, 'execute')
                )
                and pg_get_function_arguments(p.oid) like 'me text DEFAULT NULL::text%'
            """
        )
        return {row["proname"] for row in found}


def methods_of(*owners: type) -> set[str]:
    return {name for owner in owners for name, _ in getmembers(owner, isfunction) if not name.startswith("_")}


def test_every_call_of_the_interface_has_a_statement_and_a_method(module_db: Database) -> None:
    functions = interface(module_db)
    assert set(QUERIES) == functions | set(OF_MAINTAINERS)
    for identity, maintainer in ((Identity, Maintainer), (AsyncIdentity, AsyncMaintainer)):
        assert methods_of(identity) == functions | OF_CALLS
        assert methods_of(maintainer) == set(OF_MAINTAINERS)


@pytest.mark.parametrize("name", QUERIES)
def test_a_statement_is_one_call_of_the_function_it_is_named_after(name: str) -> None:
    assert parts(name)["function"] == name
    assert QUERIES[name].count("durable.") == (1 if name in OF_MAINTAINERS else 2)  # the function, and act_as
    assert ";" not in QUERIES[name]


@pytest.mark.parametrize("name", QUERIES)
def test_a_statement_gives_every_argument_by_its_name_and_type(module_db: Database, name: str) -> None:
    given = parts(name)["arguments"].split(",\n")
    me = [] if name in OF_MAINTAINERS else [("me", "text")]
    assert not me or given.pop(0) == ME
    arguments = [ARGUMENT.fullmatch(argument) for argument in given]
    assert all(argument is not None and argument["name"] == argument["parameter"] for argument in arguments)
    expected, _ = signature(module_db, name)
    assert [*me, *((a["name"], a["type"]) for a in arguments if a)] == expected


def kind(name: str) -> type[Any]:
    """Return the dataclass that a call makes of a row."""
    hint = METHODS[name].__annotations__["return"]
    (found,) = re.findall(r"^(?:list\[)?(\w+)\]?(?: \| None)?$", str(hint))
    return getattr(types, found)  # type: ignore[no-any-return]


# How a column of each type is read, so that no setting of the connection has a say.
AS_TEXT = {
    "text": "{}",
    "timestamptz": "extract(epoch from {})::text",
    "text[]": "to_json({})::text",
    "integer[]": "to_json({})::text",
    "bytea": "encode({}, 'hex')",
    **dict.fromkeys(("uuid", "integer", "boolean", "json"), "{}::text"),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_statement_reads_every_column_as_text_into_the_field_of_its_name(module_db: Database, name: str) -> None:
    columns = re.split(r",\s+(?!'hex')", parts(name)["columns"])
    _, expected = signature(module_db, name)
    assert columns == [AS_TEXT[type_].format(column) for column, type_ in expected]
    assert [column for column, _ in expected] == [field.name for field in dataclasses.fields(kind(name))]


@pytest.mark.parametrize("name", QUERIES)
def test_a_statement_for_sqlalchemy_has_the_same_parameters(name: str) -> None:
    parameters = set(re.findall(r"%\((\w+)\)s", QUERIES[name]))
    assert set(re.findall(r"(?<!:):(\w+) as", with_colons(QUERIES[name]))) == parameters
    assert "%" not in with_colons(QUERIES[name])
