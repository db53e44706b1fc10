-- Writing a checkpoint, and showing one.
set local role durable_engine;

-- Saves the state of a run after a step, for an attempt whose lock on the run is taken. A repeat with equal content is
-- harmless; other content for a saved step, and a step after a gap, are refused.
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

comment on function durable.write_checkpoint is
'The checkpoint; saved, or already_saved for an equal repeat. Raises 22W03, 23W11, 55W10.';

revoke all on function durable.write_checkpoint from public;

-- Says why a checkpoint can't be saved: another state stands for this step, or the step before has none.
create or replace function durable.refuse_checkpoint(
    wanted durable.checkpoints, saved durable.checkpoints, last_step integer
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (saved).step is not null then
        raise exception using
            errcode = '23W11',
            message = format('another state is saved for step %s of run %s', (wanted).step, (wanted).run_uid),
            detail = format(
                'saved by attempt %s at %s, schema_version %s; refused: attempt %s, schema_version %s',
                (saved).attempt, (saved).created_at, (saved).schema_version, (wanted).attempt, (wanted).schema_version
            ),
            hint = 'Steps are saved once. A resumed run goes on from load_checkpoint, with the step after that.',
            schema = 'durable',
            table = 'checkpoints',
            column = case when (saved).schema_version <> (wanted).schema_version then 'schema_version' else 'state' end,
            constraint = 'checkpoints_pkey';
    end if;
    raise exception using
        errcode = '55W10',
        message = format('step %s of run %s can''t be saved', (wanted).step, (wanted).run_uid),
        detail = case
            when refuse_checkpoint.last_step is null then 'nothing is saved yet'
            else format('the last saved step is %s', refuse_checkpoint.last_step)
        end,
        hint = 'The first step is 0 or 1, each further one is one more than the last.',
        schema = 'durable',
        table = 'checkpoints',
        column = 'step',
        constraint = 'checkpoints_steps_have_no_gap';
end
$$;

comment on function durable.refuse_checkpoint is 'Raises 23W11 or 55W10.';

revoke all on function durable.refuse_checkpoint from public;

set local role durable_owner;

-- A row of checkpoints in the form that callers get.
create or replace function durable.checkpoint_as_row(checkpoint durable.checkpoints, outcome text)
returns durable.checkpoint_row
language sql stable
begin atomic
    select
        (checkpoint).run_uid,
        (checkpoint).step,
        (checkpoint).schema_version,
        (checkpoint).event_seq,
        (checkpoint).attempt,
        durable.unescape_json((checkpoint).state),
        (checkpoint).created_at,
        checkpoint_as_row.outcome;
end;

comment on function durable.checkpoint_as_row is 'A checkpoint as callers see it.';

revoke all on function durable.checkpoint_as_row from public;
grant execute on function durable.checkpoint_as_row to durable_app, durable_operator, durable_engine;
