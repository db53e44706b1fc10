-- Takes the locks of a settlement in their order: the session row, by an update that an append under an older snapshot
-- trips over, then the run row. A settled run never changes and needs no lock. Closed sessions too: a run that was
-- executing may still say how it ended.
set local role durable_owner;

create or replace function durable.lock_run(run_uid uuid)
returns durable.runs
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs;
begin
    select r.* into v_run from durable.runs as r where r.run_uid = lock_run.run_uid;
    if not found then
        perform durable.refuse_run(lock_run.run_uid);
    elsif v_run.settled_at is not null then
        return v_run;
    end if;
    update durable.sessions as s
    set updated_at = clock_timestamp()
    where s.tenant_id = v_run.tenant_id and s.session_uid = v_run.session_uid;
    select r.* into strict v_run
    from durable.runs as r
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    for no key update;
    return v_run;
end
$$;

comment on function durable.lock_run(uuid) is
'The run, its session updated and both rows locked. Raises 42W05 when the policies show none, 22W03 for NULL.';

revoke all on function durable.lock_run(uuid) from public;
grant execute on function durable.lock_run(uuid) to durable_engine, durable_steward;
