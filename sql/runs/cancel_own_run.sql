-- cancel_run for the app: runs of its tenant and user.
set local role durable_engine;

create or replace function durable.cancel_own_run(run_uid uuid, reason text)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return durable.cancel_open_run(cancel_own_run.run_uid, cancel_own_run.reason);
end
$$;

comment on function durable.cancel_own_run(uuid, text) is 'What cancel_run does for an app; see there.';

revoke all on function durable.cancel_own_run(uuid, text) from public;
grant execute on function durable.cancel_own_run(uuid, text) to durable_app;
