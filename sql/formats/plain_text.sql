-- A name that came inside JSON in its stored form: one that holds the escape of what a text can't hold (NUL, half a
-- surrogate pair) is no name.
set local role durable_owner;

create or replace function durable.plain_text(value text, field text)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if strpos(plain_text.value, chr(65534)) > 0 then
        raise exception using
            errcode = '22W01',
            message = format('%s holds NUL, half a surrogate pair or U+FFFE', plain_text.field),
            detail = format('field %s', plain_text.field),
            hint = 'Names are texts as every language has them.',
            schema = 'durable',
            column = plain_text.field;
    end if;
    return plain_text.value;
end
$$;

comment on function durable.plain_text(text, text) is 'The value, NULL for NULL. Raises 22W01 for what holds U+FFFE.';

revoke all on function durable.plain_text(text, text) from public;
grant execute on function durable.plain_text(text, text) to durable_engine, durable_steward;
