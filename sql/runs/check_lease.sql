-- How long a lease may be: long enough to be renewed, short enough to be waited for. In seconds: a day is 25 hours
-- somewhere.
set local role durable_owner;

create or replace function durable.check_lease(lease interval)
returns interval
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_seconds constant float8 := extract(epoch from check_lease.lease)::float8;
begin
    if (v_seconds between 0.1 and 86400) is not true then
        raise exception using
            errcode = '22W03',
            message = format('lease is %s', coalesce(check_lease.lease::text, 'missing')),
            detail = 'The limits are 100 milliseconds and 1 day.',
            hint = 'Take a time after which a dead worker should be given up, such as 1 minute, and renew it in between.',
            schema = 'durable',
            column = 'lease';
    end if;
    return make_interval(secs => v_seconds);
end
$$;

comment on function durable.check_lease(interval) is
'The lease in seconds. Raises 22W03 for NULL or beyond 100 milliseconds to 1 day.';

revoke all on function durable.check_lease(interval) from public;
grant execute on function durable.check_lease(interval) to durable_engine;
