-- A caller's own names for things: what may be stored, and what fits in a key.
set local role durable_owner;

-- A text without what can't be seen at its ends: white space, invisible and control characters.
create or replace function durable.trimmed(value text)
returns text
language sql immutable parallel safe
return btrim(
    value,
    U&'\0020\0009\000a\000b\000c\000d\0085\00a0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200a'
    '\2028\2029\202f\205f\3000'
    '\00ad\180e\200b\200c\200d\200e\200f\2060\2061\2062\2063\2064\2800\3164\feff\fffe'
    '\0001\0002\0003\0004\0005\0006\0007\0008\000e\000f\0010\0011\0012\0013\0014\0015\0016\0017\0018\0019'
    '\001a\001b\001c\001d\001e\001f\007f'
);

comment on function durable.trimmed is
'The text without white space, invisible and control characters at either end; NULL for NULL.';

revoke all on function durable.trimmed from public;
grant execute on function durable.trimmed to
durable_app, durable_operator, durable_engine, durable_steward, durable_janitor;

-- Says whether a caller's name may be stored: 1 to 512 characters, nothing blank or invisible at either end.
-- The domain identifier keeps the same test on every column that holds such a name.
create or replace function durable.is_identifier(value text)
returns boolean
language sql immutable parallel safe
return char_length(value) between 1 and 512 and value = durable.trimmed(value);

comment on function durable.is_identifier is
'True for 1 to 512 characters without white space, invisible or control characters at either end; NULL for NULL.';

revoke all on function durable.is_identifier from public;
grant execute on function durable.is_identifier to
durable_app, durable_operator, durable_engine, durable_steward, durable_janitor;

-- Raises 22W01 for a name that is_identifier refuses, and says which of the rules it breaks.
create or replace function durable.refuse_identifier(field text, value text)
returns text
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

comment on function durable.refuse_identifier is
'Raises 22W01 naming the field, the limit and the length; never returns. For check_identifier.';

revoke all on function durable.refuse_identifier from public;
grant execute on function durable.refuse_identifier to
durable_app, durable_operator, durable_engine, durable_steward, durable_janitor;

-- Refuses a name that may not be stored. Plain SQL without SET: inlined, a good name costs no call.
create or replace function durable.check_identifier(field text, value text)
returns text
language sql immutable
return case when durable.is_identifier(value) then value else durable.refuse_identifier(field, value) end;

comment on function durable.check_identifier is 'The value. Raises 22W01 when is_identifier is not true, for NULL too.';

revoke all on function durable.check_identifier from public;
grant execute on function durable.check_identifier to durable_app, durable_operator, durable_engine, durable_steward;

-- Names that form one key together must fit an index entry, which Postgres limits to about 2,700 bytes.
-- Four names of 512 ASCII characters do.
create or replace function durable.fits_key(bytes integer)
returns boolean
language sql immutable parallel safe
return bytes <= 2600;

comment on function durable.fits_key is 'True for names of 2,600 bytes of UTF-8 together at most.';

revoke all on function durable.fits_key from public;
grant execute on function durable.fits_key to durable_engine, durable_steward;

-- Refuses the few names that don't fit before an index raises a bare 54000.
create or replace function durable.check_key_size(fields text, variadic names text[])
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_bytes constant integer := octet_length(array_to_string(check_key_size.names, ''));
begin
    if not durable.fits_key(v_bytes) then
        raise exception using
            errcode = '22W01',
            message = format('%s are too long together: %s bytes, the limit is 2600', check_key_size.fields, v_bytes),
            detail = format('field %s, limit 2600 bytes of UTF-8 in all, length %s', check_key_size.fields, v_bytes),
            hint = 'Use shorter names; 512 characters of ASCII each always fit.',
            schema = 'durable';
    end if;
end
$$;

comment on function durable.check_key_size is 'Raises 22W01 when the names of one key don''t fit; see fits_key.';

revoke all on function durable.check_key_size from public;
grant execute on function durable.check_key_size to durable_engine, durable_steward;
