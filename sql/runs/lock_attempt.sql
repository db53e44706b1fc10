-- Takes the lock of a run for an attempt that writes for it, and refuses whoever does not hold it. The session's lock
-- goes first, as everywhere: a caller may go on in the same transaction with an append. A renewal is alone, and leaves
-- it out.
set local role durable_engine;

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

comment on function durable.lock_attempt(uuid, integer, boolean) is
'The run, locked FOR NO KEY UPDATE as its session is, and held by this attempt. Raises 22W03 for no run, 42W05, 55W03, 55W04.';

revoke all on function durable.lock_attempt(uuid, integer, boolean) from public;
