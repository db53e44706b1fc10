"""The privileges that privileges.txt lists and those a database has, as facts of the same form."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.harness import Connection

# Each fact comes with the statement that makes it untrue.
LIVE = """
with ours as (
    select 'schema durable' as object, 'durable' as name, 'schema' as kind, nspacl as acl, nspowner as owner
    from pg_namespace where nspname = 'durable'
    union all
    select 'table ' || relname, oid::regclass::text, 'table', relacl, relowner
    from pg_class where relnamespace = 'durable'::regnamespace and relkind not in ('i', 'I', 'c', 't')
    union all
    select 'type ' || typname, oid::regtype::text, 'type', coalesce(typacl, acldefault('T', typowner)), typowner
    from pg_type as t
    where typnamespace = 'durable'::regnamespace and typcategory <> 'A'
        -- A table's row type has no privileges of its own.
        and not exists (select from pg_class as c where c.oid = t.typrelid and c.relkind <> 'c')
    union all
    select
        'function ' || proname, oid::regprocedure::text, 'function', coalesce(proacl, acldefault('f', proowner)),
        proowner
    from pg_proc where pronamespace = 'durable'::regnamespace
),
columns as (
    select
        'table ' || c.relname as object, c.oid::regclass::text as name, a.attname, a.attacl as acl,
        c.relowner as owner
    from pg_attribute as a
    inner join pg_class as c on c.oid = a.attrelid
    where c.relnamespace = 'durable'::regnamespace and not a.attisdropped
),
held as (
    select
        object, lower(g.privilege_type) as privilege, g.grantee, g.is_grantable, owner,
        format('revoke %s on %s %s from %%s cascade', g.privilege_type, kind, name) as undo
    from ours, aclexplode(acl) as g
    union all
    select
        object, format('%s (%s)', lower(g.privilege_type), attname), g.grantee, g.is_grantable, owner,
        format('revoke %s (%I) on table %s from %%s cascade', g.privilege_type, attname, name)
    from columns, aclexplode(acl) as g
)
select
    format('%s: %s: %s', object, privilege, coalesce(replace(r.rolname, 'durable_', ''), 'PUBLIC'))
    || case when is_grantable then ' with grant option' else '' end as fact,
    format(undo, coalesce(quote_ident(r.rolname), 'public')) as undo
from held left join pg_roles as r on r.oid = held.grantee
where held.grantee <> held.owner
union all
select
    format('function %s: owner: %s', proname, replace(proowner::regrole::text, 'durable_', '')),
    format(
        'alter function %s owner to %s', oid::regprocedure,
        case when proowner = 'durable_owner'::regrole then 'durable_engine' else 'durable_owner' end
    )
from pg_proc where pronamespace = 'durable'::regnamespace
union all
select format('function %s: definer', proname), format('alter function %s security invoker', oid::regprocedure)
from pg_proc where pronamespace = 'durable'::regnamespace and prosecdef
union all
select
    format(
        'defaults of %s: nothing to public for %s', replace(d.defaclrole::regrole::text, 'durable_', ''), kind.name
    ),
    format(
        'alter default privileges for role %s grant %s on %s to public',
        d.defaclrole::regrole, kind.privilege, kind.name
    )
from pg_default_acl as d
inner join (values ('f', 'functions', 'execute'), ('T', 'types', 'usage')) as kind (letter, name, privilege)
    on kind.letter = d.defaclobjtype::text
where d.defaclnamespace = 0 and d.defaclrole::regrole::text like 'durable\\_%'
    and not exists (select from aclexplode(d.defaclacl) as g where g.grantee <> d.defaclrole)
union all
select format('defaults of %s: something for %s', d.defaclrole::regrole, d.defaclobjtype), ''
from pg_default_acl as d
where d.defaclnamespace = 'durable'::regnamespace
    or (d.defaclrole::regrole::text like 'durable\\_%' and exists (
        select from aclexplode(d.defaclacl) as g where g.grantee <> d.defaclrole
    ))
"""


@dataclass(frozen=True)
class Fact:
    """A privilege, an owner or a default, and what takes it away."""

    name: str
    undo: str


def live(connection: Connection) -> list[Fact]:
    found = connection.execute(LIVE.encode()).fetchall()
    return [Fact(row["fact"], row["undo"]) for row in found]


def expected() -> set[str]:
    lines = Path(__file__).with_name("privileges.txt").read_text().splitlines()
    facts: set[str] = set()
    for line in lines:
        if line and not line.startswith("#"):
            facts |= _facts(*line.split(": ", 2)) if line.count(": ") == 2 else _facts(*line.rstrip(":").split(": "))
    return facts


def _facts(thing: str, what: str, who: str = "") -> set[str]:
    if thing.startswith("defaults"):
        return {f"{thing}: {what}"}
    if thing.startswith("function"):
        owner, _, definer = what.partition(" ")
        owned = {f"{thing}: owner: {owner}"} | ({f"{thing}: definer"} if definer else set())
        return owned | {f"{thing}: execute: {role}" for role in who.split()}
    match = re.fullmatch(r"(\w+)(?: \((.*)\))?", what)
    assert match is not None, what
    columns = match[2].split(", ") if match[2] else []
    privileges = [f"{match[1]} ({column})" for column in columns] or [match[1]]
    return {f"{thing}: {privilege}: {role}" for privilege in privileges for role in who.split()}
