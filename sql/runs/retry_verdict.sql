-- May a failed attempt at this turn be sent again automatically (rate limit, empty answer)? Read from the record, not
-- from the exception: only while no tool call is recorded. Advice as of now; for the app, operators and auditors.
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
begin
    if retry_verdict.me is not null then
        perform durable.check_me(retry_verdict.me);
    end if;
    perform durable.check_isolation('retry_verdict');
    v_run := durable.find_run(retry_verdict.run_uid);
    tools := coalesce(durable.recorded_tools(v_run), '{}');
    reason := case
        when v_run.settled_at is not null then 'settled'
        when cardinality(tools) > 0 then 'tools_recorded'
        else 'no_tool_recorded'
    end;
    allowed := reason = 'no_tool_recorded';
end
$$;

comment on function durable.retry_verdict(text, uuid) is
'allowed, reason (no_tool_recorded; or settled, tools_recorded) and the tools that are recorded, by name. Raises 22W03, 42W01, 42W02, 42W05, 55W05.';

revoke all on function durable.retry_verdict(text, uuid) from public;
grant execute on function durable.retry_verdict(text, uuid) to durable_app, durable_operator, durable_auditor;
