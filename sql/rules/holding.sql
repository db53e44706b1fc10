-- Holding a run: only the attempt that has it, while its lease lasts, writes for it.
set local role durable_owner;

-- Does this attempt hold the run now, by the clock of the database and not by any that an application can set? The one
-- test behind every fenced write.
create or replace function durable.holds_run(run durable.runs, attempt integer)
returns boolean
language sql volatile
return (run).status = 'running' and (run).attempt = holds_run.attempt and (run).lease_expires_at > clock_timestamp();

comment on function durable.holds_run is
'True when the run is running, the attempt is its current one and the lease is not over; NULL for no attempt.';

revoke all on function durable.holds_run from public;
grant execute on function durable.holds_run to durable_engine;

set local role durable_engine;

-- Takes the lock of a run for an attempt that writes for it, and refuses whoever does not hold it. The session's lock
-- goes first, as everywhere: a caller may go on in the same transaction with an append. A renewal is alone, and leaves
-- it out.
create or replace function durable.lock_attempt(run_uid uuid, attempt integer, session_too boolean default true)
returns durable.runs
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs;
begin
    if lock_attempt.session_too then
        perform
        from durable.runs as r
        inner join durable.sessions as s on s.tenant_id = r.tenant_id and s.session_uid = r.session_uid
        where r.run_uid = lock_attempt.run_uid
        for no key update of s;
    end if;
    select r.* into v_run
    from durable.runs as r
    where r.run_uid = lock_attempt.run_uid
    for no key update;
    if not found then
        perform durable.refuse_run(lock_attempt.run_uid);
    elsif durable.holds_run(v_run, lock_attempt.attempt) is not true then
        perform durable.refuse_attempt(v_run, lock_attempt.attempt);
    end if;
    return v_run;
end
$$;

comment on function durable.lock_attempt is
'The run, locked FOR NO KEY UPDATE as its session is, and held by this attempt. Raises 22W03 for no run, 42W05, 55W03, 55W04.';

revoke all on function durable.lock_attempt from public;

set local role durable_owner;

-- Says why an attempt may write nothing: the run is settled, the attempt is missing, or it does not hold the run.
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

comment on function durable.refuse_attempt is
'Raises 55W03 for a settled run, else 55W04: the attempt is missing, stale, or its lease is over.';

revoke all on function durable.refuse_attempt from public;
grant execute on function durable.refuse_attempt to durable_engine, durable_steward;
