-- Raises 22W02 for a JSON value that is too deep or too large as a whole; no path leads to a part at fault.
set local role durable_owner;

create or replace function durable.refuse_large_json(field text, reason text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '22W02',
        message = format('%s is nested too deep or too large to be stored', refuse_large_json.field),
        detail = refuse_large_json.reason,
        hint = 'Store the large part elsewhere and refer to it.',
        schema = 'durable',
        column = refuse_large_json.field;
end
$$;

comment on function durable.refuse_large_json(text, text) is 'Raises 22W02.';

revoke all on function durable.refuse_large_json(text, text) from public;
grant execute on function durable.refuse_large_json(text, text) to
durable_app, durable_operator, durable_engine, durable_steward;
