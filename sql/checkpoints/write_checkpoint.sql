-- Saves the state of a run after a step, for an attempt whose lock on the run is taken. A repeat with equal content is
-- harmless; other content for a saved step, and a step after a gap, are refused.
set local role durable_engine;

create or replace function durable.write_checkpoint(run durable.runs, step integer, state jsonb, schema_version integer)
returns durable.checkpoint_row
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_wanted durable.checkpoints;
    v_saved durable.checkpoints;
    v_last integer;
begin
    v_wanted.tenant_id := (run).tenant_id;
    v_wanted.run_uid := (run).run_uid;
    v_wanted.step := durable.check_place(write_checkpoint.step, 'step');
    v_wanted.user_id := (run).user_id;
    v_wanted.attempt := (run).attempt;
    v_wanted.schema_version := durable.check_place(write_checkpoint.schema_version, 'schema_version');
    v_wanted.state := write_checkpoint.state;
    v_wanted.digest := sha256(convert_to(v_wanted.state::text, 'UTF8'));

    select max(k.step) into v_last
    from durable.checkpoints as k
    where k.tenant_id = v_wanted.tenant_id and k.run_uid = v_wanted.run_uid;
    if v_wanted.step <= v_last then
        select k.* into v_saved
        from durable.checkpoints as k
        where k.tenant_id = v_wanted.tenant_id and k.run_uid = v_wanted.run_uid and k.step = v_wanted.step;
        if v_saved.state = v_wanted.state and v_saved.schema_version = v_wanted.schema_version then
            return durable.checkpoint_as_row(v_saved, 'already_saved');
        end if;
    end if;
    if v_wanted.step <= v_last or v_wanted.step > coalesce(v_last, 0) + 1 then
        perform durable.refuse_checkpoint(v_wanted, v_saved, v_last);
    end if;

    insert into durable.checkpoints as k (
        tenant_id, run_uid, step, previous_step, user_id, attempt, schema_version, event_seq, state, digest
    )
    select
        v_wanted.tenant_id, v_wanted.run_uid, v_wanted.step, v_last, v_wanted.user_id, v_wanted.attempt,
        v_wanted.schema_version, s.last_seq, v_wanted.state, v_wanted.digest
    from durable.sessions as s
    where s.tenant_id = (run).tenant_id and s.session_uid = (run).session_uid
    returning k.* into strict v_saved;
    return durable.checkpoint_as_row(v_saved, 'saved');
end
$$;

comment on function durable.write_checkpoint(durable.runs, integer, jsonb, integer) is
'The checkpoint; saved, or already_saved for an equal repeat. Raises 22W03, 23W11, 55W10.';

revoke all on function durable.write_checkpoint(durable.runs, integer, jsonb, integer) from public;
