-- JSON as a caller sends it -> jsonb as it is stored. NUL and lone surrogates, which jsonb can't hold and tools do
-- return, are kept by the reversible escape of escape_text; unescape_json is the inverse. What can't be kept is refused
-- (22W02). Postgres is asked first: almost every value needs no escape, and whole surrogate pairs it reads itself.
set local role durable_owner;

create or replace function durable.escape_json(value json, field text)
returns jsonb
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Only the escape's own mark, U+FFFE, has to be looked for: Postgres would take it as it is.
    if strpos(escape_json.value::text, chr(65534)) = 0
        and (strpos(escape_json.value::text, chr(92) || 'u') = 0 or escape_json.value::text !~* (repeat(chr(92), 2) || 'ufffe'))
    then
        return durable.check_expansion(escape_json.value, escape_json.value::text::jsonb, escape_json.field);
    end if;
    return durable.escape_rare_json(escape_json.value, escape_json.field);
exception
    -- U+0000, and half a surrogate pair.
    when untranslatable_character or invalid_text_representation then
        return durable.escape_rare_json(escape_json.value, escape_json.field);
    when numeric_value_out_of_range then
        perform durable.refuse_json(escape_json.value, escape_json.field, sqlerrm);
    when statement_too_complex or program_limit_exceeded then
        perform durable.refuse_large_json(escape_json.field, sqlerrm);
end
$$;

comment on function durable.escape_json(json, text) is
'The stored form of a JSON value; NUL, lone surrogates and U+FFFE become U+FFFE and four hex digits. Raises 22W02 naming the path of what jsonb can''t hold.';

revoke all on function durable.escape_json(json, text) from public;
grant execute on function durable.escape_json(json, text) to
durable_app, durable_operator, durable_engine, durable_steward;
