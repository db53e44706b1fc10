-- May a failed attempt at this turn be sent again automatically (rate limit, empty answer)? Read from the record, not
-- from the exception: only while no tool call is recorded that a repeat could do twice. Advice as of now; for the app,
-- operators and auditors.
set local role durable_owner;

create or replace function durable.retry_verdict(
    me text default null,
    run_uid uuid default null,
    out allowed boolean,
    out reason text,
    out tools text[]
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs;
    v_recorded text[];
    v_unverified text[];
    v_blocking text[];
begin
    perform durable.check_me(retry_verdict.me);
    perform durable.check_isolation('retry_verdict');
    v_run := durable.find_run(retry_verdict.run_uid);
    v_recorded := coalesce(durable.recorded_tools(v_run), '{}');
    v_unverified := durable.unverified_tools(v_run);
    v_blocking := durable.blocking_tools(v_run);
    reason := case
        when v_run.settled_at is not null then 'settled'
        when cardinality(v_unverified) > 0 then 'unverified'
        when cardinality(v_blocking) > 0 then 'tools_recorded'
        when cardinality(v_recorded) > 0 then 'nothing_repeats'
        else 'no_tool_recorded'
    end;
    tools := case reason
        when 'unverified' then v_unverified
        when 'tools_recorded' then v_blocking
        when 'nothing_repeats' then '{}'
        else v_recorded
    end;
    allowed := reason in ('no_tool_recorded', 'nothing_repeats');
end
$$;

comment on function durable.retry_verdict is
'allowed, reason (no_tool_recorded, nothing_repeats; or settled, unverified, tools_recorded) and the tools that block, by name. Raises 22W03, 42W01, 42W02, 42W05, 55W05.';

revoke all on function durable.retry_verdict from public;
grant execute on function durable.retry_verdict to durable_app, durable_operator, durable_auditor;
