-- Says why an attempt may write nothing: the run is settled, the attempt is missing, or it does not hold the run.
set local role durable_owner;

create or replace function durable.refuse_attempt(run durable.runs, attempt integer)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if run.settled_at is not null then
        raise exception using
            errcode = '55W03',
            message = format('the run of invocation %L has %s', run.invocation_id, run.status),
            detail = format('run %s, settled at %s', run.run_uid, run.settled_at),
            hint = 'Nothing more is recorded for a settled run; a new turn gets a new invocation_id.',
            schema = 'durable',
            table = 'runs';
    end if;
    if refuse_attempt.attempt is null then
        raise exception using
            errcode = '55W04',
            message = format('no attempt is given, and run %s is %s', run.run_uid, run.status),
            detail = 'Only the attempt that holds a run writes for it.',
            hint = 'Pass the attempt that start_run returned to this worker.',
            schema = 'durable',
            table = 'runs';
    end if;
    raise exception using
        errcode = '55W04',
        message = format('attempt %s does not hold run %s', refuse_attempt.attempt, run.run_uid),
        detail = case
            when refuse_attempt.attempt <> run.attempt then format('current attempt: %s', run.attempt)
            when run.status = 'running' then format('its lease ran out at %s', run.lease_expires_at)
            else format('the run is %s', run.status)
        end,
        hint = 'Stop this worker: another one may have taken the run. start_run takes it up again when it is free.',
        schema = 'durable',
        table = 'runs';
end
$$;

comment on function durable.refuse_attempt(durable.runs, integer) is
'Raises 55W03 for a settled run, else 55W04: the attempt is missing, stale, or its lease is over.';

revoke all on function durable.refuse_attempt(durable.runs, integer) from public;
grant execute on function durable.refuse_attempt(durable.runs, integer) to durable_engine, durable_steward;
