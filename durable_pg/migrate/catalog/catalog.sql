-- What schema durable consists of, one row a fact: kind, object, attribute, value. The same on 14 to 18 for the same
-- schema. Reads catalogs that every role may read; needs search_path = pg_catalog, pg_temp.
with
our_role as (
    select r.*, r.rolname::text as name
    from pg_roles as r
    where r.rolname in (
        'durable_owner', 'durable_engine', 'durable_steward', 'durable_janitor',
        'durable_app', 'durable_operator', 'durable_maintainer', 'durable_auditor'
    )
),
our_schema as (
    select n.* from pg_namespace as n where n.nspname = 'durable'
),
relation as (
    select c.*, format('%I', c.relname) as name
    from pg_class as c
    inner join our_schema as n on n.oid = c.relnamespace
),
columns as (
    select a.*, r.name || '.' || quote_ident(a.attname) as name, r.relowner
    from pg_attribute as a
    inner join relation as r on r.oid = a.attrelid
    where a.attnum > 0 and not a.attisdropped and r.relkind in ('r', 'p', 'v', 'm', 'f', 'c')
),
function as (
    select p.*, replace(p.oid::regprocedure::text, 'durable.', '') as name
    from pg_proc as p
    inner join our_schema as n on n.oid = p.pronamespace
),
-- Types of their own: neither row types of tables nor arrays.
type as (
    select t.*, format('%I', t.typname) as name
    from pg_type as t
    inner join our_schema as n on n.oid = t.typnamespace
    left join pg_class as c on c.oid = t.typrelid
    where (t.typrelid = 0 or c.relkind = 'c') and not (t.typelem <> 0 and t.typcategory = 'A')
),
-- (kind, object, owner, acl, kind letter of acldefault)
acl as (
    select 'schema grant' as kind, 'durable' as object, n.nspowner as owner, n.nspacl as acl, 'n'::"char" as letter
    from our_schema as n
    union all
    select 'grant', r.name, r.relowner, r.relacl, (case r.relkind when 'S' then 's' else 'r' end)::"char"
    from relation as r
    where r.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
    union all
    select 'grant', c.name, c.relowner, c.attacl, 'c'::"char" from columns as c
    union all
    select 'grant', f.name, f.proowner, f.proacl, 'f'::"char" from function as f
    union all
    select 'grant', 'type ' || t.name, t.typowner, t.typacl, 'T'::"char" from type as t
),
fact (kind, object, attribute, value) as (
    select 'schema', 'durable', 'owner', n.nspowner::regrole::text from our_schema as n
    union all
    select 'schema', 'durable', 'comment', obj_description(n.oid, 'pg_namespace') from our_schema as n

    union all
    select 'table', r.name, a.attribute, a.value
    from relation as r
    cross join lateral (
        values
        ('owner', r.relowner::regrole::text),
        ('kind', r.relkind::text),
        ('persistence', r.relpersistence::text),
        ('options', array_to_string(r.reloptions, ', ')),
        ('replica identity', r.relreplident::text),
        ('row security', r.relrowsecurity::text),
        ('row security forced', r.relforcerowsecurity::text),
        ('comment', obj_description(r.oid, 'pg_class'))
    ) as a (attribute, value)
    where r.relkind in ('r', 'p', 'v', 'm', 'f', 'S')

    union all
    select 'column', c.name, a.attribute, a.value
    from columns as c
    left join pg_attrdef as d on d.adrelid = c.attrelid and d.adnum = c.attnum
    cross join lateral (
        values
        ('type', format_type(c.atttypid, c.atttypmod)),
        ('not null', c.attnotnull::text),
        ('default', pg_get_expr(d.adbin, d.adrelid)),
        ('generated', c.attidentity::text || c.attgenerated::text),
        ('collation', case when c.attcollation <> 0 then c.attcollation::regcollation::text end),
        ('storage', c.attstorage::text || c.attcompression::text),
        -- Counted without the columns that were dropped before it.
        ('place', (
            select count(*)::text from pg_attribute as e
            where e.attrelid = c.attrelid and e.attnum > 0 and e.attnum <= c.attnum and not e.attisdropped
        )),
        ('comment', col_description(c.attrelid, c.attnum))
    ) as a (attribute, value)

    union all
    select 'constraint', coalesce(r.name, t.name) || '.' || quote_ident(k.conname), a.attribute, a.value
    from pg_constraint as k
    inner join our_schema as n on n.oid = k.connamespace
    left join relation as r on r.oid = k.conrelid
    left join type as t on t.oid = k.contypid
    cross join lateral (
        values
        ('definition', pg_get_constraintdef(k.oid)),
        ('validated', k.convalidated::text),
        ('comment', obj_description(k.oid, 'pg_constraint'))
    ) as a (attribute, value)
    -- From 18 on NOT NULL is a constraint too; the columns have it.
    where k.contype <> 'n'

    union all
    select 'index', format('%I', c.relname), a.attribute, a.value
    from relation as r
    inner join pg_index as i on i.indrelid = r.oid
    inner join pg_class as c on c.oid = i.indexrelid
    cross join lateral (
        values
        ('definition', pg_get_indexdef(i.indexrelid)),
        ('valid', (i.indisvalid and i.indisready)::text),
        ('replica identity', i.indisreplident::text),
        ('comment', obj_description(i.indexrelid, 'pg_class'))
    ) as a (attribute, value)

    union all
    select 'trigger', r.name || '.' || quote_ident(g.tgname), a.attribute, a.value
    from pg_trigger as g
    inner join relation as r on r.oid = g.tgrelid
    cross join lateral (
        values
        ('definition', pg_get_triggerdef(g.oid)),
        ('mode', case g.tgenabled when 'A' then 'always' when 'O' then 'origin' when 'R' then 'replica' else 'disabled' end),
        ('comment', obj_description(g.oid, 'pg_trigger'))
    ) as a (attribute, value)
    where not g.tgisinternal

    union all
    select 'rule', r.name || '.' || quote_ident(w.rulename), 'definition', pg_get_ruledef(w.oid)
    from pg_rewrite as w
    inner join relation as r on r.oid = w.ev_class

    union all
    select 'policy', r.name || '.' || quote_ident(p.polname), a.attribute, a.value
    from pg_policy as p
    inner join relation as r on r.oid = p.polrelid
    cross join lateral (
        values
        ('command', case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end),
        ('permissive', p.polpermissive::text),
        ('roles', (
            select string_agg(case g.role when 0 then 'public' else g.role::regrole::text end, ', ' order by 1)
            from unnest(p.polroles) as g (role)
        )),
        ('using', pg_get_expr(p.polqual, p.polrelid)),
        ('check', pg_get_expr(p.polwithcheck, p.polrelid)),
        ('comment', obj_description(p.oid, 'pg_policy'))
    ) as a (attribute, value)

    union all
    select 'function', f.name, a.attribute, a.value
    from function as f
    inner join pg_language as l on l.oid = f.prolang
    cross join lateral (
        values
        ('owner', f.proowner::regrole::text),
        ('kind', f.prokind::text),
        ('arguments', case when f.prokind <> 'a' then pg_get_function_arguments(f.oid) end),
        ('result', pg_get_function_result(f.oid)),
        ('language', l.lanname::text),
        ('volatility', f.provolatile::text),
        ('security definer', f.prosecdef::text),
        ('leakproof', f.proleakproof::text),
        ('strict', f.proisstrict::text),
        ('parallel', f.proparallel::text),
        ('cost, rows', f.procost::text || ', ' || f.prorows::text),
        ('settings', array_to_string(f.proconfig, '; ')),
        ('source md5', md5(coalesce(regexp_replace(pg_get_function_sqlbody(f.oid), '"([a-z_][a-z0-9_]*)"', '\1', 'g'), replace(f.prosrc, e'\r\n', e'\n')))),
        ('comment', obj_description(f.oid, 'pg_proc'))
    ) as a (attribute, value)

    union all
    select 'type', t.name, a.attribute, a.value
    from type as t
    cross join lateral (
        values
        ('owner', t.typowner::regrole::text),
        ('kind', t.typtype::text),
        ('base', case when t.typbasetype <> 0 then format_type(t.typbasetype, t.typtypmod) end),
        ('not null', t.typnotnull::text),
        ('default', t.typdefault),
        ('labels', (select string_agg(e.enumlabel, ', ' order by e.enumsortorder) from pg_enum as e where e.enumtypid = t.oid)),
        ('comment', obj_description(t.oid, 'pg_type'))
    ) as a (attribute, value)

    -- Whatever else lies in the schema: operators, statistics, text search, collations.
    union all
    select 'object', i.type || ' ' || i.identity, 'exists', 'true'
    from pg_depend as d
    inner join our_schema as n on n.oid = d.refobjid
    cross join lateral pg_identify_object(d.classid, d.objid, d.objsubid) as i
    where
        d.refclassid = 'pg_namespace'::regclass and d.deptype = 'n'
        and d.classid not in ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass, 'pg_default_acl'::regclass)

    union all
    select
        g.kind, g.object,
        case e.grantee when 0 then 'public' else e.grantee::regrole::text end || ' ' || lower(e.privilege_type),
        case when bool_or(e.is_grantable) then 'granted with grant option' else 'granted' end
    from acl as g
    cross join lateral aclexplode(coalesce(g.acl, acldefault(g.letter, g.owner))) as e
    -- The owner's own are left out, and with them MAINTAIN, which exists from 17 on.
    where e.grantee <> g.owner
    group by g.kind, g.object, e.grantee, e.privilege_type

    -- What new objects would give away: global ones of our roles, all of our schema.
    union all
    select
        'default grant',
        d.defaclrole::regrole::text || ' ' || case d.defaclobjtype when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'functions' when 'T' then 'types' else 'schemas' end
        || case when d.defaclnamespace <> 0 then ' in schema durable' else '' end,
        case e.grantee when 0 then 'public' else e.grantee::regrole::text end || ' ' || lower(e.privilege_type),
        case when e.is_grantable then 'granted with grant option' else 'granted' end
    from pg_default_acl as d
    cross join lateral aclexplode(d.defaclacl) as e
    where
        (d.defaclnamespace = 0 and d.defaclrole in (select o.oid from our_role as o))
        or d.defaclnamespace in (select n.oid from our_schema as n)

    union all
    select 'role', o.name, a.attribute, a.value
    from our_role as o
    cross join lateral (
        values
        ('attributes', concat_ws(
            ', ', case when o.rolcanlogin then 'login' else 'nologin' end,
            case when o.rolsuper then 'superuser' end, case when o.rolbypassrls then 'bypassrls' end,
            case when o.rolcreaterole then 'createrole' end, case when o.rolcreatedb then 'createdb' end,
            case when o.rolreplication then 'replication' end
        )),
        ('settings', (
            select string_agg(s.setting, '; ' order by s.setting)
            from pg_db_role_setting as c
            cross join lateral unnest(c.setconfig) as s (setting)
            where
                c.setrole = o.oid
                and c.setdatabase in (0, (select b.oid from pg_database as b where b.datname = current_database()))
        ))
    ) as a (attribute, value)
    union all
    select 'membership', o.name, 'member of ' || m.roleid::regrole::text, 'true'
    from pg_auth_members as m
    inner join our_role as o on o.oid = m.member

    -- A login that holds a front role holds nothing else of ours; one that bypasses RLS holds none.
    union all
    select 'login', quote_ident(l.rolname), 'reaches', string_agg(o.name, ', ' order by o.name)
    from pg_roles as l
    inner join our_role as o
        on pg_has_role(l.oid, o.oid, 'USAGE')
        or pg_has_role(l.oid, o.oid, case when current_setting('server_version_num')::integer >= 160000 then 'SET' else 'MEMBER' end)
    where l.rolcanlogin and not l.rolsuper
    group by l.rolname, l.rolbypassrls
    having
        (count(*) > 1 or l.rolbypassrls)
        and bool_or(o.name in ('durable_app', 'durable_operator', 'durable_maintainer', 'durable_auditor'))
)
-- A word is quoted from the version on that made it a keyword (json_object: 16): plain words lose their quotes.
select
    f.kind,
    regexp_replace(f.object, '"([a-z_][a-z0-9_]*)"', '\1', 'g'),
    regexp_replace(f.attribute, '"([a-z_][a-z0-9_]*)"', '\1', 'g'),
    regexp_replace(f.value, '"([a-z_][a-z0-9_]*)"', '\1', 'g')
from fact as f
where f.value is not null and f.value <> ''
order by f.kind collate "C", f.object collate "C", f.attribute collate "C"
