-- Gives an existing run to a worker, if nobody has it: interrupted, decided, or its lease is over. The attempt grows,
-- so that whoever had it before writes nothing more, whatever name its worker has. A run without an attempt left is
-- settled as failed instead. The caller holds the locks of session and run.
set local role durable_engine;

create or replace function durable.take_run(run durable.runs, holder text, lease interval, max_attempts integer)
returns durable.run_outcome
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run durable.runs := take_run.run;
    v_wanted durable.runs;
    v_limit constant integer := coalesce(take_run.max_attempts, v_run.max_attempts);
begin
    if v_run.settled_at is not null then
        return durable.run_as_outcome(v_run, 'settled');
    elsif v_run.status = 'awaiting' then
        return durable.run_as_outcome(v_run, 'awaiting');
    elsif durable.holds_run(v_run, v_run.attempt) then
        return durable.run_as_outcome(v_run, 'busy');
    end if;

    -- Settlement, and an append under an older snapshot, trip over this update.
    update durable.sessions as s
    set updated_at = clock_timestamp()
    where s.tenant_id = v_run.tenant_id and s.session_uid = v_run.session_uid;
    if v_run.attempt - v_run.first_attempt + 1 >= v_limit then
        perform durable.check_isolation('start_run');
        v_wanted.status := 'failed';
        v_wanted.error := durable.attempts_used_up(v_run, v_limit, v_run.interrupted_with);
        return durable.settle_locked_run(v_run, v_wanted);
    end if;
    update durable.runs as r
    set
        status = 'running',
        attempt = r.attempt + 1,
        max_attempts = v_limit,
        interrupted_with = null,
        lease_holder = take_run.holder,
        lease_expires_at = clock_timestamp() + take_run.lease
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    returning r.* into strict v_run;
    return durable.run_as_outcome(v_run, 'resumed');
end
$$;

comment on function durable.take_run(durable.runs, text, interval, integer) is
'A run after a worker asked for it: resumed (with a new attempt), busy, awaiting, or settled.';

revoke all on function durable.take_run(durable.runs, text, interval, integer) from public;
