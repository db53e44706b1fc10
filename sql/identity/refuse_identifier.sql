-- Raises 22W01 for a name that is_identifier refuses, and says which of the rules it breaks.
set local role durable_owner;

create or replace function durable.refuse_identifier(field text, value text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_length constant integer := char_length(refuse_identifier.value);
    v_problem text;
begin
    v_problem := case
        when v_length is null then 'is missing'
        when v_length = 0 then 'is empty'
        when v_length > 512 then format('has %s characters, the limit is 512', v_length)
        when btrim(refuse_identifier.value) = '' then 'is blank'
        else 'begins or ends with white space or an invisible character'
    end;
    raise exception using
        errcode = '22W01',
        message = format('%s %s', refuse_identifier.field, v_problem),
        detail = format('field %s, limit 512 characters, length %s', refuse_identifier.field, coalesce(v_length::text, 'none')),
        hint = 'Give a name of 1 to 512 characters without white space at its ends; it is stored exactly as given.',
        schema = 'durable',
        column = refuse_identifier.field;
end
$$;

comment on function durable.refuse_identifier(text, text) is
'Raises 22W01 naming the field, the limit and the length. Call it when is_identifier is not true.';

revoke all on function durable.refuse_identifier(text, text) from public;
grant execute on function durable.refuse_identifier(text, text) to
durable_app, durable_operator, durable_engine, durable_steward, durable_janitor;
