-- Places in a run as a caller counts them: step, ordinal.
set local role durable_owner;

create or replace function durable.check_place(place integer, field text)
returns integer
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (check_place.place >= 0) is not true then
        raise exception using
            errcode = '22W03',
            message = format('%s is %s', check_place.field, coalesce(check_place.place::text, 'missing')),
            hint = 'Count from 0 or 1; what is the same has the same number in every attempt.',
            schema = 'durable',
            column = check_place.field;
    end if;
    return check_place.place;
end
$$;

comment on function durable.check_place(integer, text) is 'The place. Raises 22W03 for NULL and below 0.';

revoke all on function durable.check_place(integer, text) from public;
grant execute on function durable.check_place(integer, text) to durable_engine;
