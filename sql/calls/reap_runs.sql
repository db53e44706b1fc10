-- Marks dead runs as what they are: running and their lease over becomes interrupted, and what they had begun becomes
-- unverified. For the maintainer. Nothing depends on it, since everybody reads leases by the clock; it makes the tables
-- say so too. Locked runs are skipped and counted. tools_executed stays NULL. One audit row a run.
set local role durable_janitor;

create or replace function durable.reap_runs(
    max_runs integer default 100, out runs integer, out effects integer, out skipped integer
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_dead durable.resumable_run;
    v_dead_runs integer;
    v_effects integer;
begin
    perform durable.check_batch(reap_runs.max_runs, 'max_runs');
    runs := 0;
    effects := 0;
    for v_dead.tenant_id, v_dead.run_uid, v_dead.attempt, v_dead.since in
        select r.tenant_id, r.run_uid, r.attempt, r.lease_expires_at
        from durable.runs as r
        where r.status = 'running' and r.lease_expires_at <= clock_timestamp()
        order by r.lease_expires_at
        limit reap_runs.max_runs
        for no key update skip locked
    loop
        update durable.effects as e
        set status = 'unverified'
        where e.tenant_id = v_dead.tenant_id
            and e.effect_uid in (
                select h.effect_uid
                from durable.effects as h
                where h.tenant_id = v_dead.tenant_id
                    and h.held_by = v_dead.run_uid
                    and h.attempt = v_dead.attempt
                    and h.status = 'begun'
                    and h.lease_expires_at <= clock_timestamp()
                -- Its worker is just saying how it ended.
                for no key update skip locked
            );
        get diagnostics v_effects = row_count;
        update durable.runs as r
        set lease_holder = null, status = 'interrupted'
        where r.tenant_id = v_dead.tenant_id and r.run_uid = v_dead.run_uid;
        insert into durable.audit_log (tenant_id, action, subject_kind, subject_uid, reason, detail)
        values (
            v_dead.tenant_id, 'reap_runs', 'run', v_dead.run_uid, 'its lease ran out',
            jsonb_build_object(
                'attempt', v_dead.attempt, 'lease_expired_at', v_dead.since, 'effects_unverified', v_effects
            )
        );
        runs := runs + 1;
        effects := effects + v_effects;
    end loop;

    select count(*) into v_dead_runs
    from (
        select
        from durable.runs as r
        where r.status = 'running' and r.lease_expires_at <= clock_timestamp()
        limit reap_runs.max_runs
    ) as d;
    skipped := case when runs < reap_runs.max_runs then v_dead_runs else 0 end;
end
$$;

comment on function durable.reap_runs is
'How many dead runs became interrupted, how many of their effects unverified, and how many were skipped because somebody had locked them. Raises 22W03.';

revoke all on function durable.reap_runs from public;
grant execute on function durable.reap_runs to durable_maintainer;
