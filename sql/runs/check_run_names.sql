-- The names of a run as a caller gives them, and how many attempts it may have.
set local role durable_engine;

create or replace function durable.check_run_names(
    invocation_id text, trigger text, worker text, max_attempts integer
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if durable.is_identifier(check_run_names.invocation_id) is not true then
        perform durable.refuse_identifier('invocation_id', check_run_names.invocation_id);
    end if;
    if durable.is_identifier(check_run_names.trigger) is not true then
        perform durable.refuse_identifier('trigger', check_run_names.trigger);
    end if;
    if durable.is_identifier(check_run_names.worker) is not true then
        perform durable.refuse_identifier('worker', check_run_names.worker);
    end if;
    perform durable.check_key_size(
        'tenant_id and invocation_id', durable.current_tenant(), check_run_names.invocation_id
    );
    if check_run_names.max_attempts < 1 then
        raise exception using
            errcode = '22W03',
            message = format('max_attempts is %s', check_run_names.max_attempts),
            hint = 'Allow one attempt at least, or leave it out for no limit.',
            schema = 'durable',
            column = 'max_attempts';
    end if;
end
$$;

comment on function durable.check_run_names(text, text, text, integer) is 'Raises 22W01 or 22W03, naming the argument.';

revoke all on function durable.check_run_names(text, text, text, integer) from public;
