"""The guards that a database has, read from its catalog."""

from dataclasses import dataclass

from tests.catalog import test_functions as functions
from tests.catalog import test_tables as tables
from tests.rules import privileges
from tests.rules import test_least_privilege as least_privilege
from tests.rules.guard import Guard, Test
from tests.support.harness import Connection

# What must be in the registry, one by one.
LISTED = """
select format('trigger %s.%s', c.relname, t.tgname) as name
from pg_trigger as t inner join pg_class as c on c.oid = t.tgrelid
where c.relnamespace = 'durable'::regnamespace and not t.tgisinternal
union all
select format('policy %s.%s', c.relname, p.polname)
from pg_policy as p inner join pg_class as c on c.oid = p.polrelid
where c.relnamespace = 'durable'::regnamespace
union all
select 'row security ' || relname from pg_class where relnamespace = 'durable'::regnamespace and relrowsecurity
union all
select 'row security forced ' || relname
from pg_class where relnamespace = 'durable'::regnamespace and relforcerowsecurity
union all
select format('constraint %s.%s', coalesce(c.relname, t.typname), k.conname)
from pg_constraint as k
left join pg_class as c on c.oid = k.conrelid
left join pg_type as t on t.oid = k.contypid
where k.connamespace = 'durable'::regnamespace and k.contype in ('p', 'u', 'f', 'c', 'x')
union all
select 'index ' || x.relname
from pg_index as i
inner join pg_class as x on x.oid = i.indexrelid
where x.relnamespace = 'durable'::regnamespace
    and not exists (select from pg_constraint as k where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x'))
"""

# What a test of the whole catalog must miss: kind, name, and how to take it away.
CATALOGUED = """
select
    'path' as kind, p.oid::regprocedure::text as name,
    format('alter function %s reset search_path', p.oid::regprocedure) as undo
from pg_proc as p inner join pg_language as l on l.oid = p.prolang
where p.pronamespace = 'durable'::regnamespace and l.lanname = 'plpgsql'
union all
select 'pg_temp last', p.oid::regprocedure::text,
    format('alter function %s set search_path = pg_temp, pg_catalog', p.oid::regprocedure)
from pg_proc as p inner join pg_language as l on l.oid = p.prolang
where p.pronamespace = 'durable'::regnamespace and l.lanname = 'plpgsql'
union all
select 'parsed body', p.oid::regprocedure::text, format(
    'create or replace function %s(%s) returns %s language sql as $$ select null $$',
    p.oid::regproc, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid)
)
from pg_proc as p inner join pg_language as l on l.oid = p.prolang
where p.pronamespace = 'durable'::regnamespace and l.lanname = 'sql'
union all
select 'nothing to public', p.oid::regprocedure::text,
    format('grant execute on function %s to public', p.oid::regprocedure)
from pg_proc as p where p.pronamespace = 'durable'::regnamespace
union all
select 'nothing to public', t.oid::regtype::text,
    format('grant usage on type %s to public', t.oid::regtype)
from pg_type as t
where t.typnamespace = 'durable'::regnamespace and t.typcategory <> 'A'
    and not exists (select from pg_class as c where c.oid = t.typrelid and c.relkind <> 'c')
union all
select 'nothing to public', 'durable', 'grant usage on schema durable to public'
union all
select 'no create', r.rolname,
    format('grant create on schema durable to %I', r.rolname)
from pg_roles as r where r.rolname like 'durable\\_%' and r.rolname <> 'durable_owner'
union all
select 'no write', format('%s %s', c.relname, r.rolname),
    format('grant insert, update, delete on %s to %I', c.oid::regclass, r.rolname)
from pg_class as c cross join pg_roles as r
where c.relnamespace = 'durable'::regnamespace and c.relkind = 'r'
    and r.rolname in ('durable_app', 'durable_operator', 'durable_maintainer', 'durable_auditor')
union all
select 'mode', format('%s.%s', c.relname, t.tgname),
    format('alter table %s enable trigger %I', c.oid::regclass, t.tgname)
from pg_trigger as t inner join pg_class as c on c.oid = t.tgrelid
where c.relnamespace = 'durable'::regnamespace and not t.tgisinternal
union all
select 'not null', format('%s.%s', c.relname, a.attname),
    format('alter table %s alter column %I drop not null', c.oid::regclass, a.attname)
from pg_attribute as a inner join pg_class as c on c.oid = a.attrelid
where c.relnamespace = 'durable'::regnamespace and c.relkind = 'r' and a.attnum > 0 and a.attnotnull
    -- A primary key can't lose it.
    and not exists (
        select from pg_index as i where i.indrelid = c.oid and i.indisprimary and a.attnum = any (i.indkey)
    )
union all
select 'owner', c.relname,
    format('alter table %s owner to durable_engine', c.oid::regclass)
from pg_class as c where c.relnamespace = 'durable'::regnamespace and c.relkind = 'r'
union all
select 'definer''s owner', p.oid::regprocedure::text,
    format('alter function %s owner to durable_owner', p.oid::regprocedure)
from pg_proc as p where p.pronamespace = 'durable'::regnamespace and p.prosecdef
"""

MISSED_BY: dict[str, Test] = {
    "privilege": least_privilege.test_privileges_are_exactly_these,
    "path": functions.test_every_plpgsql_function_pins_its_search_path,
    "pg_temp last": functions.test_every_plpgsql_function_pins_its_search_path,
    "parsed body": functions.test_every_sql_function_has_a_parsed_body_and_no_setting,
    "nothing to public": least_privilege.test_privileges_are_exactly_these,
    "no create": least_privilege.test_privileges_are_exactly_these,
    "no write": least_privilege.test_privileges_are_exactly_these,
    "mode": tables.test_every_trigger_is_a_guard_and_always_on,
    "not null": tables.test_only_these_columns_may_be_null,
    "owner": tables.test_every_table_belongs_to_the_owner,
    "definer's owner": functions.test_a_security_definer_belongs_to_a_back_role,
}


@dataclass(frozen=True)
class Found:
    """A guard that stands in the catalog as one of a kind."""

    kind: str
    name: str
    undo: str

    def guard(self) -> Guard:
        return Guard(f"{self.kind}: {self.name}", self.undo, (MISSED_BY[self.kind],))


def listed(connection: Connection) -> set[str]:
    return {row["name"] for row in connection.execute(LISTED.encode()).fetchall()}


def catalogued(connection: Connection, kind: str) -> list[Guard]:
    if kind == "privilege":
        return [Found(kind, fact.name, fact.undo).guard() for fact in privileges.live(connection)]
    found = [Found(**row) for row in connection.execute(CATALOGUED.encode()).fetchall()]
    return [one.guard() for one in found if one.kind == kind]
