-- What stands against doing a run's work again: tools that did something, and effects of which nobody knows.
set local role durable_owner;

-- The tools that stand against doing a run's work again, by name, sorted. Calls are matched to effects one by one
-- within each attempt: a call in the log counts as harmless only if the same attempt asked the ledger for an effect of
-- that tool that is safe to ask for again (its key is an intent, or it certainly failed). Tools of class read_only or
-- keyed never block, unless one of their effects is unverified.
create or replace function durable.blocking_tools(run durable.runs)
returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions;
    v_tools text[];
begin
    select s.* into v_session
    from durable.sessions as s
    where s.tenant_id = run.tenant_id and s.session_uid = run.session_uid;

    with logged as (
        select e.attempt, tool.name, count(*) as calls
        from durable.events as e
        cross join lateral (select unnest(e.tool_calls) union all select unnest(e.extra_tool_calls)) as tool (name)
        where e.tenant_id = run.tenant_id
            and e.session_uid = run.session_uid
            and e.invocation_id = run.invocation_id
            and (e.generation = run.generation or (v_session.rewinds > 0 and not durable.is_rewound(v_session, e.seq)))
        group by e.attempt, tool.name
    ),
    asked as (
        select
            c.attempt,
            e.tool as name,
            -- Tries of one key are one call.
            count(distinct coalesce(
                e.scope || ' ' || e.intent, concat_ws(' ', 'run', e.step, e.ordinal, encode(e.args_digest, 'hex'))
            )) filter (
                where e.scope <> 'run' or e.status = 'failed'
            ) as safe,
            count(*) filter (where e.scope = 'run' and e.status <> 'failed') as unsafe
        from durable.effect_calls as c
        inner join durable.effects as e on e.tenant_id = c.tenant_id and e.effect_uid = c.effect_uid
        where c.tenant_id = run.tenant_id and c.run_uid = run.run_uid
        group by c.attempt, e.tool
    ),
    blocking as (
        select l.name
        from logged as l
        left join asked as a on a.attempt = l.attempt and a.name = l.name
        -- A call without a name is of no tool that the ledger could know.
        where l.calls > coalesce(a.safe, 0) or l.name = '(unnamed)'
        union
        select a.name from asked as a where a.unsafe > 0
        union
        -- Named at settlement, and recorded nowhere.
        select named.name
        from unnest(run.tools_executed) as named (name)
        where not exists (select from logged as l where l.name = named.name)
            and not exists (select from asked as a where a.name = named.name)
    )
    select coalesce(array_agg(b.name order by b.name collate "C"), '{}') into v_tools
    from blocking as b
    where not exists (
        select
        from durable.tools as t
        where t.tenant_id = run.tenant_id
            and t.app_name = v_session.app_name
            and t.tool = b.name
            and t.replay_class in ('read_only', 'keyed')
    );
    return v_tools;
end
$$;

comment on function durable.blocking_tools is
'The tools of a run whose calls are not known to be harmless to repeat; {} when there is none. See unverified_tools for the rest.';

revoke all on function durable.blocking_tools from public;
grant execute on function durable.blocking_tools to durable_app, durable_operator, durable_auditor;

-- The tools of a run with an effect of which nobody knows, now, whether it happened: begun or unverified. Those block
-- every verdict, whatever their class and key.
create or replace function durable.unverified_tools(run durable.runs)
returns text[]
language sql stable
return coalesce(
    (
        select array_agg(distinct e.tool::text collate "C" order by e.tool::text collate "C")
        from durable.effect_calls as c
        inner join durable.effects as e on c.tenant_id = e.tenant_id and c.effect_uid = e.effect_uid
        where c.tenant_id = (run).tenant_id and c.run_uid = (run).run_uid and e.status in ('begun', 'unverified')
    ),
    '{}'
);

comment on function durable.unverified_tools is
'The distinct tools of effects that a run asked for and that are begun or unverified; {} when there is none.';

revoke all on function durable.unverified_tools from public;
grant execute on function durable.unverified_tools to durable_app, durable_operator, durable_auditor;
