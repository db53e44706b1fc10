-- Why somebody overrides what a worker does: a reason is given, and is short enough to be shown wherever the act is.
set local role durable_owner;

create or replace function durable.check_reason(reason text)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (durable.trimmed(check_reason.reason) <> '' and char_length(check_reason.reason) <= 2000) is not true then
        raise exception using
            errcode = '22W03',
            message = case
                when durable.trimmed(check_reason.reason) <> '' then format('reason has %s characters, the limit is 2000', char_length(check_reason.reason))
                else 'reason is missing'
            end,
            hint = 'Say in a sentence why it is done; it is kept with the act.',
            schema = 'durable',
            column = 'reason';
    end if;
    return durable.trimmed(check_reason.reason);
end
$$;

comment on function durable.check_reason(text) is 'The reason without blanks at its ends. Raises 22W03 when it is missing, blank or over 2,000 characters.';

revoke all on function durable.check_reason(text) from public;
grant execute on function durable.check_reason(text) to durable_engine, durable_steward;
