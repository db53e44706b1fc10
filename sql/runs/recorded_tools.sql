-- The tools that log and ledger hold for a run, sorted, each once: found in its events, named by its caller, or asked
-- for as an effect. NULL when nothing but user texts is recorded: then nobody knows what it did, and {} would be a
-- guess.
set local role durable_owner;

create or replace function durable.recorded_tools(run durable.runs)
returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions;
    v_tools text[];
    v_recorded boolean;
begin
    select s.* into v_session
    from durable.sessions as s
    where s.tenant_id = run.tenant_id and s.session_uid = run.session_uid;
    select
        array_agg(distinct found.tool collate "C" order by found.tool collate "C") filter (where found.tool is not null),
        coalesce(bool_or(found.speaks), false)
    into v_tools, v_recorded
    from (
        select tool.name as tool, e.author <> 'user' or tool.name is not null as speaks
        from durable.events as e
        left join lateral (select unnest(e.tool_calls) union all select unnest(e.extra_tool_calls)) as tool (name) on true
        where e.tenant_id = run.tenant_id
            and e.session_uid = run.session_uid
            and e.invocation_id = run.invocation_id
            -- After a partial rewind an older generation may still stand in part; what stands, happened.
            and (e.generation = run.generation or (v_session.rewinds > 0 and not durable.is_rewound(v_session, e.seq)))
        union all
        select e.tool::text, true
        from durable.effect_calls as c
        inner join durable.effects as e on e.tenant_id = c.tenant_id and e.effect_uid = c.effect_uid
        where c.tenant_id = run.tenant_id and c.run_uid = run.run_uid
    ) as found;
    if not v_recorded then
        return null;
    end if;
    return coalesce(v_tools, '{}');
end
$$;

comment on function durable.recorded_tools(durable.runs) is
'The distinct tools recorded for a run; {} when none is called; NULL when there is nothing but the user''s events.';

revoke all on function durable.recorded_tools(durable.runs) from public;
grant execute on function durable.recorded_tools(durable.runs) to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
