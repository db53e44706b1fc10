-- A text without what can't be seen at its ends: white space, invisible and control characters.
set local role durable_owner;

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

comment on function durable.trimmed(text) is
'The text without white space, invisible and control characters at either end; NULL for NULL.';

revoke all on function durable.trimmed(text) from public;
grant execute on function durable.trimmed(text) to
durable_app, durable_operator, durable_engine, durable_steward, durable_janitor;
