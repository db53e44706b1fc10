-- The tools that the log holds for a run, sorted, each once: found in its events or named by its caller. NULL when
-- nothing but user texts is recorded: then nobody knows what it did, and {} would be a guess.
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
        array_agg(distinct tool.name collate "C" order by tool.name collate "C") filter (where tool.name is not null),
        coalesce(bool_or(e.author <> 'user' or tool.name is not null), false)
    into v_tools, v_recorded
    from durable.events as e
    left join lateral (select unnest(e.tool_calls) union all select unnest(e.extra_tool_calls)) as tool (name) on true
    where e.tenant_id = run.tenant_id
        and e.session_uid = run.session_uid
        and e.invocation_id = run.invocation_id
        -- After a partial rewind an older generation may still stand in part; what stands, happened.
        and (e.generation = run.generation or (v_session.rewinds > 0 and not durable.is_rewound(v_session, e.seq)));
    if not v_recorded then
        return null;
    end if;
    return coalesce(v_tools, '{}');
end
$$;

comment on function durable.recorded_tools(durable.runs) is
'The distinct tools recorded for a run; {} when its events call none; NULL when it has no event but the user''s.';

revoke all on function durable.recorded_tools(durable.runs) from public;
grant execute on function durable.recorded_tools(durable.runs) to
durable_app, durable_operator, durable_auditor, durable_engine;
