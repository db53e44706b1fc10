-- May a new run be started from this settled run's input? Only when it is known that nothing would happen twice: by the
-- log, the ledger and the classes of tools. Advice as of now; for the app, operators and auditors.
set local role durable_owner;

create or replace function durable.replay_verdict(
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
    perform durable.check_me(replay_verdict.me);
    perform durable.check_isolation('replay_verdict');
    v_run := durable.find_run(replay_verdict.run_uid);
    v_recorded := durable.recorded_tools(v_run);
    v_unverified := durable.unverified_tools(v_run);
    v_blocking := durable.blocking_tools(v_run);
    reason := case
        when v_run.settled_at is null then 'not_settled'
        when cardinality(v_unverified) > 0 then 'unverified'
        when v_run.status = 'succeeded' then 'succeeded'
        -- Nobody's word counts without a history: nothing is recorded, or it is gone.
        when v_run.tools_executed is null or v_recorded is null then 'unknown'
        when cardinality(v_blocking) > 0 then 'tools_executed'
        when cardinality(v_run.tools_executed) > 0 then 'nothing_repeats'
        else 'nothing_executed'
    end;
    tools := case reason
        when 'unverified' then v_unverified
        when 'tools_executed' then v_blocking
        when 'nothing_repeats' then '{}'
        else coalesce(v_run.tools_executed, v_recorded, '{}')
    end;
    allowed := reason in ('nothing_executed', 'nothing_repeats');
end
$$;

comment on function durable.replay_verdict is
'allowed, reason (nothing_executed, nothing_repeats; or not_settled, succeeded, unverified, unknown, tools_executed) and the tools that block, by name. Raises 22W03, 42W01, 42W02, 42W05, 55W05.';

revoke all on function durable.replay_verdict from public;
grant execute on function durable.replay_verdict to durable_app, durable_operator, durable_auditor;
