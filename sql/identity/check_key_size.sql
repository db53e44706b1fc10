-- Names that form one key together must fit an index entry, which Postgres limits to about 2,700 bytes.
-- Four names of 512 ASCII characters do; this refuses (22W01) the few that don't before an index raises a bare 54000.
set local role durable_owner;

create or replace function durable.check_key_size(fields text, variadic names text[])
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_bytes constant integer := octet_length(array_to_string(check_key_size.names, ''));
begin
    if v_bytes > 2600 then
        raise exception using
            errcode = '22W01',
            message = format('%s are too long together: %s bytes, the limit is 2600', check_key_size.fields, v_bytes),
            detail = format('field %s, limit 2600 bytes of UTF-8 in all, length %s', check_key_size.fields, v_bytes),
            hint = 'Use shorter names; 512 characters of ASCII each always fit.',
            schema = 'durable';
    end if;
end
$$;

comment on function durable.check_key_size(text, text[]) is
'Raises 22W01 when the names of one key exceed 2,600 bytes of UTF-8 together.';

revoke all on function durable.check_key_size(text, text[]) from public;
grant execute on function durable.check_key_size(text, text[]) to durable_engine, durable_steward;
