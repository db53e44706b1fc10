-- escape_json for the values that do need the escape.
set local role durable_owner;

create or replace function durable.escape_rare_json(value json, field text)
returns jsonb
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
begin
    return durable.check_expansion(
        escape_rare_json.value, durable.escape_text(escape_rare_json.value::text)::jsonb, escape_rare_json.field
    );
exception
    when numeric_value_out_of_range then
        perform durable.refuse_json(escape_rare_json.value, escape_rare_json.field, sqlerrm);
    when statement_too_complex or program_limit_exceeded then
        perform durable.refuse_large_json(escape_rare_json.field, sqlerrm);
end
$$;

comment on function durable.escape_rare_json(json, text) is 'The stored form of a JSON value that holds NUL, a lone surrogate or U+FFFE. Raises 22W02.';

revoke all on function durable.escape_rare_json(json, text) from public;
grant execute on function durable.escape_rare_json(json, text) to
durable_app, durable_operator, durable_engine, durable_steward;
