-- Settles a run for good: its status, result, error and the tools it called. For the app. tools_executed must name
-- every recorded call, and is derived when not given. Takes the locks an append takes, session then run, and updates
-- the session: so no call can be recorded that the settled value leaves out.
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
    v_recorded text[];
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
    if settle_run.attempt <> v_run.attempt then
        raise exception using
            errcode = '55W04',
            message = format('attempt %s is not the current one of run %s', settle_run.attempt, v_run.run_uid),
            detail = format('current attempt: %s', v_run.attempt),
            hint = 'Stop this worker: another one has taken the run over.',
            schema = 'durable',
            table = 'runs';
    end if;
    if v_run.settled_at is not null then
        perform durable.check_same_outcome(v_run, v_wanted);
        return durable.run_as_outcome(v_run, 'already_settled');
    end if;

    v_recorded := durable.recorded_tools(v_run);
    if v_wanted.tools_executed is not null and not v_wanted.tools_executed @> coalesce(v_recorded, '{}') then
        raise exception using
            errcode = '23W08',
            message = format('tools_executed leaves out recorded tool calls of run %s', v_run.run_uid),
            detail = format(
                'left out: %s',
                (select string_agg(tool.name, ', ') from unnest(v_recorded) as tool (name) where tool.name <> all (v_wanted.tools_executed))
            ),
            hint = 'Name them too, or leave tools_executed out: the database derives it from what is recorded.',
            schema = 'durable',
            table = 'runs',
            column = 'tools_executed';
    end if;

    update durable.runs as r
    set
        status = v_wanted.status,
        result = v_wanted.result,
        error = v_wanted.error,
        tools_executed = coalesce(v_wanted.tools_executed, v_recorded),
        settled_at = clock_timestamp()
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    returning r.* into strict v_run;
    return durable.run_as_outcome(v_run, 'settled');
end
$$;

comment on function durable.settle_run(text, uuid, integer, text, json, json, text[]) is
'Settles a run; outcome settled, or already_settled for an equal repeat. tools_executed stays NULL when nothing but user texts is recorded and none are given. Raises 22W02, 22W03, 23W02 (another tools_executed; DETAIL shows the stored one), 23W08, 42W01, 42W02, 42W05, 55W03, 55W04, 55W05.';

revoke all on function durable.settle_run(text, uuid, integer, text, json, json, text[]) from public;
grant execute on function durable.settle_run(text, uuid, integer, text, json, json, text[]) to durable_app;
