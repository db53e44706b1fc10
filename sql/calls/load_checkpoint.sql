-- The newest checkpoint of a run, or no row. For the app and operators, under their own row policies.
set local role durable_owner;

create or replace function durable.load_checkpoint(me text default null, run_uid uuid default null)
returns setof durable.checkpoint_row
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run durable.runs;
begin
    perform durable.check_me(load_checkpoint.me);
    v_run := durable.find_run(load_checkpoint.run_uid);
    return query
    select l.*
    from durable.checkpoints as k
    cross join lateral durable.checkpoint_as_row(k, 'loaded') as l
    where k.tenant_id = v_run.tenant_id and k.run_uid = v_run.run_uid
    order by k.step desc
    limit 1;
end
$$;

comment on function durable.load_checkpoint is
'The checkpoint of the last saved step, outcome loaded; no row when none is saved. Raises 22W03, 42W01, 42W02, 42W05.';

revoke all on function durable.load_checkpoint from public;
grant execute on function durable.load_checkpoint to durable_app, durable_operator;
