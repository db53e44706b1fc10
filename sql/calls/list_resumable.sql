-- The runs of all tenants that nobody executes: interrupted, or their lease is over. For the maintainer's dispatcher,
-- which sees no content: a worker then acts as that user and takes the run by start_run. Those that wait for somebody
-- to look into an effect come last, so that no number of them hides the others; else longest waiting first.
set local role durable_janitor;

create or replace function durable.list_resumable(max_runs integer default 100)
returns setof durable.resumable_run
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_batch(list_resumable.max_runs, 'max_runs');
    return query
    select
        r.tenant_id, r.user_id, s.app_name, r.session_uid, r.run_uid, r.invocation_id, r.status, r.attempt,
        r.lease_expires_at, w.effects
    from (
        -- Each by its own index.
        select i.tenant_id, i.user_id, i.session_uid, i.run_uid, i.invocation_id, i.status, i.attempt, i.lease_expires_at
        from durable.runs as i
        where i.status = 'interrupted' and i.lease_expires_at <= clock_timestamp()
        union all
        select d.tenant_id, d.user_id, d.session_uid, d.run_uid, d.invocation_id, d.status, d.attempt, d.lease_expires_at
        from durable.runs as d
        where d.status = 'running' and d.lease_expires_at <= clock_timestamp()
    ) as r
    inner join durable.sessions as s on s.tenant_id = r.tenant_id and s.session_uid = r.session_uid
    cross join lateral (
        select count(distinct e.effect_uid)::integer::durable.counter as effects
        from durable.effect_calls as c
        inner join durable.effects as e on c.tenant_id = e.tenant_id and c.effect_uid = e.effect_uid
        where c.tenant_id = r.tenant_id
            and c.run_uid = r.run_uid
            and durable.effect_status(e.status, e.lease_expires_at) = 'unverified'
    ) as w
    -- Nothing can be said in a closed session; its runs can only be cancelled.
    where s.closed_at is null
    order by w.effects > 0, r.lease_expires_at, r.tenant_id, r.run_uid
    limit list_resumable.max_runs;
end
$$;

comment on function durable.list_resumable is
'Runs of all tenants that a worker may take by start_run, those with unverified effects last, else longest waiting first: whose, where, since when, and how many unverified effects they wait for. Raises 22W03.';

revoke all on function durable.list_resumable from public;
grant execute on function durable.list_resumable to durable_maintainer;
