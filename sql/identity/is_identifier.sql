-- Says whether a caller's name may be stored: 1 to 512 characters, no white space at either end.
-- The domain identifier keeps the same test on every column that holds such a name.
set local role durable_owner;

create or replace function durable.is_identifier(value text)
returns boolean
language sql immutable parallel safe
return char_length(value) between 1 and 512
    and value = btrim(
        value,
        U&'\0020\0009\000a\000b\000c\000d\0085\00a0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009'
        '\200a\200b\2028\2029\202f\205f\3000\feff'
    );

comment on function durable.is_identifier(text) is
'True for 1 to 512 characters without white space (Unicode''s, the zero-width ones included) at either end; NULL for NULL.';

revoke all on function durable.is_identifier(text) from public;
grant execute on function durable.is_identifier(text) to
durable_app, durable_operator, durable_engine, durable_steward, durable_janitor;
