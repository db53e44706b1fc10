-- Settles a run for good: its status, result, error and the tools it called. For the app, as the attempt that holds the
-- run. Takes the locks an append takes, session then run, and updates the session: so no call can be recorded that the
-- settled value leaves out.
set local role durable_engine;

create or replace function durable.settle_run(
    me text default null,
    run_uid uuid default null,
    attempt integer default null,
    status text default null,
    result json default null,
    error json default null,
    tools_executed text[] default null
)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_wanted durable.runs;
    v_run durable.runs;
begin
    if settle_run.me is not null then
        perform durable.check_me(settle_run.me);
    end if;
    perform durable.check_isolation('settle_run');
    v_wanted.status := settle_run.status;
    v_wanted.result := durable.escape_json(settle_run.result, 'result');
    v_wanted.error := durable.escape_json(settle_run.error, 'error');
    if settle_run.tools_executed is not null then
        select coalesce(array_agg(distinct tool.name collate "C" order by tool.name collate "C"), '{}')
        into v_wanted.tools_executed
        from unnest(durable.check_tool_names(settle_run.tools_executed, 'tools_executed')) as tool (name);
    end if;

    v_run := durable.lock_run(settle_run.run_uid);
    if settle_run.status is null or settle_run.status not in ('succeeded', 'failed', 'cancelled') then
        raise exception using
            errcode = '22W03',
            message = format('%s is no status that settles a run', coalesce(quote_literal(settle_run.status), 'NULL')),
            hint = 'Settle as succeeded, failed (given up) or cancelled (called off).',
            schema = 'durable',
            column = 'status';
    end if;
    if v_run.settled_at is not null and coalesce(settle_run.attempt = v_run.attempt, true) then
        perform durable.check_same_outcome(v_run, v_wanted);
        return durable.run_as_outcome(v_run, 'already_settled');
    end if;
    if durable.holds_run(v_run, settle_run.attempt) is not true then
        perform durable.refuse_attempt(v_run, settle_run.attempt);
    end if;
    return durable.settle_locked_run(v_run, v_wanted);
end
$$;

comment on function durable.settle_run(text, uuid, integer, text, json, json, text[]) is
'Settles a run; outcome settled, or already_settled for an equal repeat. tools_executed stays NULL when nothing but user texts is recorded and none are given. Raises 22W02, 22W03, 23W02 (another tools_executed; DETAIL shows the stored one), 23W08, 42W01, 42W02, 42W05, 55W03, 55W04, 55W05.';

revoke all on function durable.settle_run(text, uuid, integer, text, json, json, text[]) from public;
grant execute on function durable.settle_run(text, uuid, integer, text, json, json, text[]) to durable_app;
