-- JSON as a caller sends it -> jsonb as it is stored. NUL and lone surrogates, which jsonb can't hold and tools do
-- return, are kept by the reversible escape of escape_text; unescape_json is the inverse. What can't be kept is refused
-- (22W02).
set local role durable_owner;

create or replace function durable.escape_json(value json, field text)
returns jsonb
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Almost every value has neither the escape's mark nor a backslash and a u.
    if strpos(escape_json.value::text, chr(65534)) = 0 and strpos(escape_json.value::text, chr(92) || 'u') = 0 then
        return escape_json.value::text::jsonb;
    end if;
    return durable.escape_text(escape_json.value::text)::jsonb;
exception
    when statement_too_complex or program_limit_exceeded then
        raise exception using
            errcode = '22W02',
            message = format('%s is nested too deep or too large to be stored: %s', escape_json.field, sqlerrm),
            detail = format('path %s', escape_json.field),
            hint = 'Store the large part elsewhere and refer to it.',
            schema = 'durable',
            column = escape_json.field;
    when numeric_value_out_of_range or untranslatable_character then
        raise exception using
            errcode = '22W02',
            message = format('%s can''t be stored exactly', durable.json_fault_path(escape_json.value, escape_json.field)),
            detail = sqlerrm,
            hint = 'Send the value as a string, or leave it out.',
            schema = 'durable',
            column = escape_json.field;
end
$$;

comment on function durable.escape_json(json, text) is
'The stored form of a JSON value; NUL, lone surrogates and U+FFFE become U+FFFE and four hex digits. Raises 22W02 naming the path of what jsonb can''t hold.';

revoke all on function durable.escape_json(json, text) from public;
grant execute on function durable.escape_json(json, text) to
durable_app, durable_operator, durable_engine, durable_steward;
