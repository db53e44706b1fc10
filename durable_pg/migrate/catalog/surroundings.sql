-- What stands around schema durable and could lift a rule: logins that are more than they should be, objects elsewhere
-- that act with our roles' rights, tables that inherit, settings that outlive a transaction. Nothing, where all is
-- well.
with our_role as (
    select r.*, r.rolname::text as name
    from pg_roles as r
    where r.rolname in (
        'durable_owner', 'durable_engine', 'durable_steward', 'durable_janitor',
        'durable_app', 'durable_operator', 'durable_maintainer', 'durable_auditor'
    )
)
-- A runtime login has no attribute and no other membership that would lift a rule, ADMIN alone included.
select 'login', quote_ident(l.rolname), 'also', string_agg(w.what, ', ' order by w.what)
from pg_roles as l
cross join lateral (
    select 'createrole' as what where l.rolcreaterole
    union all
    select 'replication' where l.rolreplication
    union all
    select 'member of ' || r.rolname
    from pg_roles as r
    where
        pg_has_role(l.oid, r.oid, 'MEMBER')
        and r.oid <> l.oid
        and (r.rolbypassrls or r.rolsuper or r.rolcreaterole or r.rolname in ('pg_read_all_data', 'pg_write_all_data'))
    union all
    select 'admin of ' || o.name
    from our_role as o
    where
        pg_has_role(l.oid, o.oid, 'MEMBER')
        and not pg_has_role(l.oid, o.oid, 'USAGE')
        and not pg_has_role(
            l.oid, o.oid, case when current_setting('server_version_num')::integer >= 160000 then 'SET' else 'MEMBER' end
        )
) as w
where
    l.rolcanlogin
    and not l.rolsuper
    and exists (
        select
        from our_role as o
        where
            o.name in ('durable_app', 'durable_operator', 'durable_maintainer', 'durable_auditor')
            and (
                pg_has_role(l.oid, o.oid, 'USAGE')
                or pg_has_role(
                    l.oid, o.oid, case when current_setting('server_version_num')::integer >= 160000 then 'SET' else 'MEMBER' end
                )
            )
    )
group by l.rolname

-- The migration login reaches the owner and all back roles; whoever reaches some of them is somebody else.
union all
select 'login', quote_ident(l.rolname), 'reaches behind', string_agg(o.name, ', ' order by o.name)
from pg_roles as l
inner join our_role as o
    on o.name in ('durable_owner', 'durable_engine', 'durable_steward', 'durable_janitor')
    and (
        pg_has_role(l.oid, o.oid, 'USAGE')
        or pg_has_role(
            l.oid, o.oid, case when current_setting('server_version_num')::integer >= 160000 then 'SET' else 'MEMBER' end
        )
    )
where l.rolcanlogin and not l.rolsuper
group by l.rolname
having count(*) < 4

-- What our roles own elsewhere acts with their rights, or reads with them.
union all
select 'outside', i.type || ' ' || i.identity, 'owner', d.refobjid::regrole::text
from pg_shdepend as d
inner join our_role as o on o.oid = d.refobjid
cross join lateral pg_identify_object(d.classid, d.objid, d.objsubid) as i
where
    d.refclassid = 'pg_authid'::regclass
    and d.deptype = 'o'
    and d.dbid = (select b.oid from pg_database as b where b.datname = current_database())
    and i.schema is distinct from 'durable'
    and d.classid <> 'pg_default_acl'::regclass
    and not (d.classid = 'pg_namespace'::regclass and i.identity = 'durable')

-- Rows of an inheriting table show up in ours, and no guard sees them.
union all
select 'outside', 'table ' || h.inhrelid::regclass, 'inherits', h.inhparent::regclass::text
from pg_inherits as h
inner join pg_class as c on c.oid = h.inhparent
where c.relnamespace = to_regnamespace('durable') and c.relkind in ('r', 'p')

union all
select 'outside', 'publication ' || quote_ident(p.pubname), 'table', r.prrelid::regclass::text
from pg_publication_rel as r
inner join pg_publication as p on p.oid = r.prpubid
inner join pg_class as c on c.oid = r.prrelid
where c.relnamespace = to_regnamespace('durable')

-- An identity that is set for a role or a database outlives every transaction.
union all
select
    'outside',
    'setting ' || s.setting,
    'of',
    case when c.setrole = 0 then 'every login' else c.setrole::regrole::text end
from pg_db_role_setting as c
cross join lateral unnest(c.setconfig) as s (setting)
where
    s.setting ~ '^durable[.]'
    and c.setdatabase in (0, (select b.oid from pg_database as b where b.datname = current_database()))

-- Foreign keys are triggers too.
union all
select 'outside', 'foreign keys of ' || t.tgrelid::regclass, 'enabled', string_agg(distinct t.tgenabled::text, '')
from pg_trigger as t
inner join pg_class as c on c.oid = t.tgrelid
where c.relnamespace = to_regnamespace('durable') and t.tgisinternal and t.tgenabled <> 'O'
group by t.tgrelid
order by 1, 2, 3
