-- The last write of a run, by whoever has its locks and the right to end it: status, result, error, and the tools it
-- called, which must name every recorded call and are derived when not given.
set local role durable_owner;

create or replace function durable.settle_locked_run(run durable.runs, wanted durable.runs)
returns durable.run_outcome
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs := settle_locked_run.run;
    v_recorded constant text[] := durable.recorded_tools(v_run);
begin
    if wanted.tools_executed is not null and not wanted.tools_executed @> coalesce(v_recorded, '{}') then
        raise exception using
            errcode = '23W08',
            message = format('tools_executed leaves out recorded tool calls of run %s', v_run.run_uid),
            detail = format(
                'left out: %s',
                (select string_agg(tool.name, ', ') from unnest(v_recorded) as tool (name) where tool.name <> all (wanted.tools_executed))
            ),
            hint = 'Name them too, or leave tools_executed out: the database derives it from what is recorded.',
            schema = 'durable',
            table = 'runs',
            column = 'tools_executed';
    end if;

    update durable.runs as r
    set
        status = wanted.status,
        result = wanted.result,
        error = wanted.error,
        tools_executed = coalesce(wanted.tools_executed, v_recorded),
        lease_holder = null,
        settled_at = clock_timestamp()
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    returning r.* into strict v_run;
    return durable.run_as_outcome(v_run, 'settled');
end
$$;

comment on function durable.settle_locked_run(durable.runs, durable.runs) is
'Settles a run as wanted; outcome settled. The caller holds the locks of lock_run. Raises 23W08.';

revoke all on function durable.settle_locked_run(durable.runs, durable.runs) from public;
grant execute on function durable.settle_locked_run(durable.runs, durable.runs) to durable_engine, durable_steward;
