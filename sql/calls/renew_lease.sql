-- Extends the lease of the attempt that holds a run, and of the effects it has begun. For the app. A lease that is over
-- is not renewed: others may have read the effects as unverified already.
set local role durable_engine;

create or replace function durable.renew_lease(
    me text default null,
    run_uid uuid default null,
    attempt integer default null,
    lease interval default '5 minutes'
)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run durable.runs;
    v_lease interval;
begin
    perform durable.check_me(renew_lease.me);
    v_lease := durable.check_lease(renew_lease.lease);
    v_run := durable.lock_attempt(renew_lease.run_uid, renew_lease.attempt, session_too => false);
    update durable.runs as r
    set lease_expires_at = clock_timestamp() + v_lease
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    returning r.* into strict v_run;
    update durable.effects as e
    set lease_expires_at = greatest(e.lease_expires_at, v_run.lease_expires_at)
    where e.tenant_id = v_run.tenant_id
        and e.effect_uid in (
            select h.effect_uid
            from durable.effects as h
            where h.tenant_id = v_run.tenant_id
                and h.held_by = v_run.run_uid
                and h.attempt = v_run.attempt
                and h.status = 'begun'
                -- An effect whose own lease is over has been read as unverified, and stays so.
                and h.lease_expires_at > clock_timestamp()
            -- Somebody is just saying how it ended.
            for no key update skip locked
        );
    return durable.run_as_outcome(v_run, 'renewed');
end
$$;

comment on function durable.renew_lease is
'Extends the lease to now plus this long, and that of the attempt''s begun effects; outcome renewed. Raises 22W03, 42W01, 42W02, 42W05, 55W03, 55W04.';

revoke all on function durable.renew_lease from public;
grant execute on function durable.renew_lease to durable_app;
