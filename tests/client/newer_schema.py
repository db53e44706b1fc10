"""A schema as a later version might leave it: further tables, parameters and columns, and functions underneath."""

from psycopg import sql

from tests.support.harness import Connection, Database

_FUNCTION = """
select split_part(pg_get_function_arguments(p.oid), ', OUT ', 1) as parameters, p.proretset as several,
    (select string_agg(format('%%1$I => %%1$I', n), ', ') from unnest(p.proargnames[:p.pronargs]) as n) as handed_on,
    coalesce(
        (
            select string_agg(format('%%I %%s', attname, format_type(atttypid, atttypmod)), ', ' order by attnum)
            from pg_attribute where attrelid = t.typrelid and attnum > 0 and not attisdropped
        ),
        (
            select string_agg(format('%%I %%s', name, type::regtype), ', ')
            from unnest(p.proargnames, p.proallargtypes, p.proargmodes) as a (name, type, mode) where mode in ('t', 'o')
        )
    ) as columns
from pg_proc as p inner join pg_type as t on p.prorettype = t.oid
where p.pronamespace = 'durable'::regnamespace and p.proname = %s
"""


def make_newer(db: Database, functions: list[str]) -> None:
    """Give each of these functions one more parameter at its end, and one more column."""
    with db.superuser() as root:
        # A function finds its parameters by its own name, which therefore stays.
        root.execute("create schema older")
        root.execute("grant usage on schema older to durable_app, durable_engine")
        root.execute("create table durable.later (id bigint primary key)")
        root.execute("create function durable.later() returns integer language sql return 1")
        for function in functions:
            _widen(root, function)


def _widen(root: Connection, function: str) -> None:
    found = root.execute(_FUNCTION, (function,)).fetchone()
    assert found is not None
    names = {
        "new": sql.Identifier("durable", function),
        "old": sql.Identifier("older", function),
        "type": sql.Identifier("durable", f"{function}_row"),
        "setof": sql.SQL("setof " if found["several"] else ""),
        **{part: sql.SQL(found[part]) for part in ("parameters", "columns", "handed_on")},
    }
    for statement in (
        "alter function {new} set schema older",
        "create type {type} as ({columns}, later integer)",
        """create function {new}({parameters}, later integer default null) returns {setof}{type} language sql
           as $$ select t.*, 1 from {old}({handed_on}) as t $$""",
        "revoke execute on function {new} from public",
        # record_step calls others, as the back role.
        "grant execute on function {new} to durable_app, durable_engine",
    ):
        root.execute(sql.SQL(statement).format(**names))
