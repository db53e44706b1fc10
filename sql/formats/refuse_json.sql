-- Raises 22W02 for a JSON value that jsonb can't hold, naming the path of the part at fault.
set local role durable_owner;

create or replace function durable.refuse_json(value json, field text, reason text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '22W02',
        message = format('%s can''t be stored exactly', durable.json_fault_path(refuse_json.value, refuse_json.field)),
        detail = refuse_json.reason,
        hint = 'Send the value as a string, or leave it out.',
        schema = 'durable',
        column = refuse_json.field;
end
$$;

comment on function durable.refuse_json(json, text, text) is 'Raises 22W02 with the path of the first member that jsonb refuses.';

revoke all on function durable.refuse_json(json, text, text) from public;
grant execute on function durable.refuse_json(json, text, text) to
durable_app, durable_operator, durable_engine, durable_steward;
