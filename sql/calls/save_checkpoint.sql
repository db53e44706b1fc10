-- Saves the state of a run after a step, as the attempt that holds it. For the app. Locks session and run.
set local role durable_engine;

create or replace function durable.save_checkpoint(
    me text default null,
    run_uid uuid default null,
    attempt integer default null,
    step integer default null,
    state json default null,
    schema_version integer default 1
)
returns durable.checkpoint_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_state constant jsonb := coalesce(durable.escape_json(save_checkpoint.state, 'state'), 'null');
begin
    perform durable.check_me(save_checkpoint.me);
    perform durable.check_isolation('save_checkpoint');
    return durable.write_checkpoint(
        durable.lock_attempt(save_checkpoint.run_uid, save_checkpoint.attempt),
        save_checkpoint.step, v_state, save_checkpoint.schema_version
    );
end
$$;

comment on function durable.save_checkpoint is
'Saves the state after a step (from 0 or 1, one by one); outcome saved, or already_saved for an equal repeat. Raises 22W02, 22W03, 23W11 (another state is saved for the step), 42W01, 42W02, 42W05, 55W03, 55W04, 55W05, 55W10 (a gap).';

revoke all on function durable.save_checkpoint from public;
grant execute on function durable.save_checkpoint to durable_app;
