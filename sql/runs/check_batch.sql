-- How many rows one call of a maintainer works on: bounded, so that cron's transactions stay short.
set local role durable_owner;

create or replace function durable.check_batch(size integer, field text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (check_batch.size between 1 and 10000) is not true then
        raise exception using
            errcode = '22W03',
            message = format('%s is %s', check_batch.field, coalesce(check_batch.size::text, 'missing')),
            detail = 'The limits are 1 and 10000.',
            hint = 'Call it again for more.',
            schema = 'durable',
            column = check_batch.field;
    end if;
end
$$;

comment on function durable.check_batch(integer, text) is 'Raises 22W03 for NULL or beyond 1 to 10,000.';

revoke all on function durable.check_batch(integer, text) from public;
grant execute on function durable.check_batch(integer, text) to durable_janitor;
