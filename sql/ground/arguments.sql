-- What an argument has to be, whoever calls: the one raise of 22W03, and the checks that several calls share. A check
-- returns the argument, or raises.
set local role durable_owner;

-- detail is left out and not empty where there is none: RAISE takes no NULL, and drivers tell the two apart.
create or replace function durable.refuse_argument(field text, message text, hint text, detail text default null)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_argument.detail is null then
        raise exception using
            errcode = '22W03',
            message = refuse_argument.message,
            hint = refuse_argument.hint,
            schema = 'durable',
            column = refuse_argument.field;
    end if;
    raise exception using
        errcode = '22W03',
        message = refuse_argument.message,
        detail = refuse_argument.detail,
        hint = refuse_argument.hint,
        schema = 'durable',
        column = refuse_argument.field;
end
$$;

comment on function durable.refuse_argument is 'Raises 22W03 for the argument that field names; never returns.';

revoke all on function durable.refuse_argument from public;
grant execute on function durable.refuse_argument to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward, durable_janitor;

-- The times that every language has: whoever reads one next, in any of them, has to be able to.
create or replace function durable.is_common_time(value timestamptz)
returns boolean
language sql immutable parallel safe
return extract(year from value at time zone 'UTC') between 1 and 9999;

comment on function durable.is_common_time is 'True from the year 1 to the year 9999 in UTC; NULL for NULL.';

revoke all on function durable.is_common_time from public;
grant execute on function durable.is_common_time to durable_engine;

-- Places in a run as a caller counts them: step, ordinal.
create or replace function durable.check_place(place integer, field text)
returns integer
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (check_place.place >= 0) is not true then
        perform durable.refuse_argument(
            check_place.field,
            format('%s is %s', check_place.field, coalesce(check_place.place::text, 'missing')),
            'Count from 0 or 1; what is the same has the same number in every attempt.'
        );
    end if;
    return check_place.place;
end
$$;

comment on function durable.check_place is 'The place. Raises 22W03 for NULL and below 0.';

revoke all on function durable.check_place from public;
grant execute on function durable.check_place to durable_engine;

-- How long a lease may be: long enough to be renewed, short enough to be waited for. In seconds: a day is 25 hours
-- somewhere.
create or replace function durable.check_lease(lease interval)
returns interval
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_seconds constant float8 := extract(epoch from check_lease.lease)::float8;
begin
    if (v_seconds between 0.1 and 86400) is not true then
        perform durable.refuse_argument(
            'lease',
            format('lease is %s', coalesce(check_lease.lease::text, 'missing')),
            'Take a time after which a dead worker should be given up, such as 1 minute, and renew it in between.',
            'The limits are 100 milliseconds and 1 day.'
        );
    end if;
    return make_interval(secs => v_seconds);
end
$$;

comment on function durable.check_lease is
'The lease in seconds. Raises 22W03 for NULL or beyond 100 milliseconds to 1 day.';

revoke all on function durable.check_lease from public;
grant execute on function durable.check_lease to durable_engine;

-- How many rows one call of a maintainer works on: bounded, so that cron's transactions stay short.
create or replace function durable.check_batch(size integer, field text)
returns integer
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (check_batch.size between 1 and 10000) is not true then
        perform durable.refuse_argument(
            check_batch.field,
            format('%s is %s', check_batch.field, coalesce(check_batch.size::text, 'missing')),
            'Call it again for more.',
            'The limits are 1 and 10000.'
        );
    end if;
    return check_batch.size;
end
$$;

comment on function durable.check_batch is 'The size. Raises 22W03 for NULL or beyond 1 to 10,000.';

revoke all on function durable.check_batch from public;
grant execute on function durable.check_batch to durable_janitor;

-- Why somebody overrides what a worker does: a reason is given, and is short enough to be shown wherever the act is.
create or replace function durable.check_reason(reason text)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (durable.trimmed(check_reason.reason) <> '' and char_length(check_reason.reason) <= 2000) is not true then
        perform durable.refuse_argument(
            'reason',
            case
                when durable.trimmed(check_reason.reason) <> ''
                    then format('reason has %s characters, the limit is 2000', char_length(check_reason.reason))
                else 'reason is missing'
            end,
            'Say in a sentence why it is done; it is kept with the act.'
        );
    end if;
    return durable.trimmed(check_reason.reason);
end
$$;

comment on function durable.check_reason is
'The reason without blanks at its ends. Raises 22W03 when it is missing, blank or over 2,000 characters.';

revoke all on function durable.check_reason from public;
grant execute on function durable.check_reason to durable_engine, durable_steward;

-- Tool names as a caller gives them: an array of one dimension, without NULLs and blanks.
create or replace function durable.check_tool_names(names text[], field text)
returns text[]
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
declare
    v_bad integer;
begin
    select min(tool.place) into v_bad
    from unnest(check_tool_names.names) with ordinality as tool (name, place)
    where tool.name is null or tool.name !~ '[^[:space:]]';
    if v_bad is not null or array_ndims(check_tool_names.names) > 1 then
        perform durable.refuse_argument(
            check_tool_names.field,
            case
                when v_bad is null then format('%s is an array of arrays', check_tool_names.field)
                else format('%s[%s] is no tool name', check_tool_names.field, v_bad)
            end,
            'Give a plain list with the name of each tool, as the agent calls it.'
        );
    end if;
    return check_tool_names.names;
end
$$;

comment on function durable.check_tool_names is
'The names, NULL for NULL. Raises 22W03 for a NULL or blank among them, or for an array of arrays.';

revoke all on function durable.check_tool_names from public;
grant execute on function durable.check_tool_names to durable_engine;
