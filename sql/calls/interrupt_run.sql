-- Gives a run back that is not done: its process was told to stop, or raised. For the app, as the attempt that holds
-- it. The next start_run takes it up; tools_executed stays NULL. What the attempt has begun and not finished becomes
-- unverified at once: nobody is there any more who could finish it. The last of max_attempts settles the run as failed.
set local role durable_engine;

create or replace function durable.interrupt_run(
    me text default null,
    run_uid uuid default null,
    attempt integer default null,
    error json default null
)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_error constant jsonb := durable.escape_json(interrupt_run.error, 'error');
    v_run durable.runs;
    v_wanted durable.runs;
begin
    perform durable.check_me(interrupt_run.me);
    perform durable.check_isolation('interrupt_run');
    v_run := durable.lock_run(interrupt_run.run_uid);
    if v_run.status = 'interrupted' and v_run.attempt = interrupt_run.attempt then
        return durable.run_as_outcome(v_run, 'already_interrupted');
    elsif v_run.status = 'failed'
        and v_run.attempt = interrupt_run.attempt
        and v_run.error ->> 'reason' = 'max_attempts'
    then
        -- The answer to its last interruption was lost.
        return durable.run_as_outcome(v_run, 'settled');
    elsif durable.holds_run(v_run, interrupt_run.attempt) is not true then
        perform durable.refuse_attempt(v_run, interrupt_run.attempt);
    end if;

    update durable.effects as e
    set status = 'unverified'
    where e.tenant_id = v_run.tenant_id
        and e.held_by = v_run.run_uid
        and e.attempt = v_run.attempt
        and e.status = 'begun';
    if v_run.attempt - v_run.first_attempt + 1 >= v_run.max_attempts then
        v_wanted.status := 'failed';
        v_wanted.error := durable.attempts_used_up(v_run, v_run.max_attempts, v_error);
        return durable.settle_locked_run(v_run, v_wanted);
    end if;
    update durable.runs as r
    set
        status = 'interrupted',
        lease_holder = null,
        lease_expires_at = clock_timestamp(),
        interrupted_with = v_error
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    returning r.* into strict v_run;
    return durable.run_as_outcome(v_run, 'interrupted');
end
$$;

comment on function durable.interrupt_run is
'Gives a run back; outcome interrupted, already_interrupted for a repeat, or settled (as failed) when it was the last of max_attempts. Raises 22W02, 22W03, 42W01, 42W02, 42W05, 55W03, 55W04, 55W05.';

revoke all on function durable.interrupt_run from public;
grant execute on function durable.interrupt_run to durable_app;
