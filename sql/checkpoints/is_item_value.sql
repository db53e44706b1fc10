-- Says whether a value may stand under a key of record_step's items. null stands for a key that is left out. What only
-- the parser of a type can tell (a time) is tried.
set local role durable_owner;

create or replace function durable.is_item_value(key text, value jsonb)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_text constant text := is_item_value.value #>> '{}';
begin
    if jsonb_typeof(is_item_value.value) = 'null' or is_item_value.key in ('content', 'result', 'error') then
        return true;
    end if;
    case
        when is_item_value.key in ('metadata', 'state_delta') then
            return jsonb_typeof(is_item_value.value) = 'object';
        when is_item_value.key = 'repeatable' then
            return jsonb_typeof(is_item_value.value) = 'boolean';
        when is_item_value.key = 'extra_tool_calls' then
            return jsonb_typeof(is_item_value.value) = 'array' and strpos(v_text, chr(65534)) = 0
                and not exists (
                    select from jsonb_array_elements(is_item_value.value) as t where jsonb_typeof(t.value) <> 'string'
                );
        when jsonb_typeof(is_item_value.value) <> 'string' or strpos(v_text, chr(65534)) > 0 then
            return false;
        when is_item_value.key = 'effect_uid' then
            perform v_text::uuid;
        when is_item_value.key = 'occurred_at' then
            perform v_text::timestamptz;
        else
            return true;
    end case;
    return true;
exception
    when data_exception then
        return false;
end
$$;

comment on function durable.is_item_value(text, jsonb) is 'True for a value of the type that the parameter of this name has, and for null.';

revoke all on function durable.is_item_value(text, jsonb) from public;
grant execute on function durable.is_item_value(text, jsonb) to durable_engine;
