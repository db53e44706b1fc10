-- Says whether a caller's name may be stored: 1 to 512 characters, nothing blank or invisible at either end.
-- The domain identifier keeps the same test on every column that holds such a name.
set local role durable_owner;

create or replace function durable.is_identifier(value text)
returns boolean
language sql immutable parallel safe
return char_length(value) between 1 and 512
    and value = btrim(
        value,
        U&'\0020\0009\000a\000b\000c\000d\0085\00a0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200a'
        '\2028\2029\202f\205f\3000'
        '\00ad\180e\200b\200c\200d\200e\200f\2060\2061\2062\2063\2064\2800\3164\feff\fffe'
        '\0001\0002\0003\0004\0005\0006\0007\0008\000e\000f\0010\0011\0012\0013\0014\0015\0016\0017\0018\0019'
        '\001a\001b\001c\001d\001e\001f\007f'
    );

comment on function durable.is_identifier(text) is
'True for 1 to 512 characters without white space, invisible or control characters at either end; NULL for NULL.';

revoke all on function durable.is_identifier(text) from public;
grant execute on function durable.is_identifier(text) to
durable_app, durable_operator, durable_engine, durable_steward, durable_janitor;
