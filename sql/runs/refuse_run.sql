-- Raises the one answer to a run_uid that leads to no row: the same for a foreign run and for none.
set local role durable_owner;

create or replace function durable.refuse_run(run_uid uuid)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_run.run_uid is null then
        raise exception using
            errcode = '22W03',
            message = 'run_uid is missing',
            hint = 'Pass the run_uid that start_run returned.',
            schema = 'durable',
            column = 'run_uid';
    end if;
    raise exception using
        errcode = '42W05',
        message = format('there is no run %s here', refuse_run.run_uid),
        hint = 'Check tenant and user of act_as, and use the run_uid that start_run returned to the same user.',
        schema = 'durable',
        table = 'runs';
end
$$;

comment on function durable.refuse_run(uuid) is 'Raises 42W05, or 22W03 for NULL.';

revoke all on function durable.refuse_run(uuid) from public;
grant execute on function durable.refuse_run(uuid) to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
