-- escape_json for arguments that are an object by contract (state, state_delta, metadata): anything else is refused.
set local role durable_owner;

create or replace function durable.escape_object(value json, field text)
returns jsonb
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
begin
    if json_typeof(escape_object.value) <> 'object' then
        raise exception using
            errcode = '22W03',
            message = format('%s is a JSON %s, it has to be an object', escape_object.field, json_typeof(escape_object.value)),
            hint = 'Send an object such as {"key": "value"}, or leave the argument out.',
            schema = 'durable',
            column = escape_object.field;
    end if;
    return durable.escape_json(escape_object.value, escape_object.field);
end
$$;

comment on function durable.escape_object(json, text) is
'The stored form of a JSON object, NULL for NULL. Raises 22W03 for any other JSON type, 22W02 for what can''t be stored.';

revoke all on function durable.escape_object(json, text) from public;
grant execute on function durable.escape_object(json, text) to durable_engine, durable_steward;
