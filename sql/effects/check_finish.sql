-- An outcome as a caller gives it: a status that the call may set, a result for what happened, an error for what did
-- not.
set local role durable_owner;

create or replace function durable.check_finish(status text, result jsonb, error jsonb, allowed text[])
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (check_finish.status = any (check_finish.allowed)) is not true then
        raise exception using
            errcode = '22W03',
            message = format('status is %s, which is no outcome to record', coalesce(quote_literal(check_finish.status), 'NULL')),
            detail = format('The outcomes are %s.', array_to_string(check_finish.allowed, ', ')),
            hint = 'succeeded: it happened. failed: it certainly did not. Whatever may have happened is unverified.',
            schema = 'durable',
            column = 'status';
    end if;
    if check_finish.result is not null and check_finish.status <> 'succeeded'
        or check_finish.error is not null and check_finish.status = 'succeeded'
    then
        raise exception using
            errcode = '22W03',
            message = format(
                '%s goes with no outcome %s',
                case when check_finish.status = 'succeeded' then 'an error' else 'a result' end, check_finish.status
            ),
            hint = 'A result is of what succeeded, an error of what failed or is unverified.',
            schema = 'durable',
            column = case when check_finish.status = 'succeeded' then 'error' else 'result' end;
    end if;
end
$$;

comment on function durable.check_finish(text, jsonb, jsonb, text[]) is 'Raises 22W03, naming the argument.';

revoke all on function durable.check_finish(text, jsonb, jsonb, text[]) from public;
grant execute on function durable.check_finish(text, jsonb, jsonb, text[]) to durable_engine, durable_steward;
