-- Says why a checkpoint can't be saved: another state stands for this step, or the step before has none.
set local role durable_engine;

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

comment on function durable.refuse_checkpoint(durable.checkpoints, durable.checkpoints, integer) is 'Raises 23W11 or 55W10.';

revoke all on function durable.refuse_checkpoint(durable.checkpoints, durable.checkpoints, integer) from public;
