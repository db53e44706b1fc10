-- Says whether a caller's name may be stored: 1 to 512 characters, nothing blank or invisible at either end.
-- The domain identifier keeps the same test on every column that holds such a name.
set local role durable_owner;

create or replace function durable.is_identifier(value text)
returns boolean
language sql immutable parallel safe
return char_length(value) between 1 and 512 and value = durable.trimmed(value);

comment on function durable.is_identifier(text) is
'True for 1 to 512 characters without white space, invisible or control characters at either end; NULL for NULL.';

revoke all on function durable.is_identifier(text) from public;
grant execute on function durable.is_identifier(text) to
durable_app, durable_operator, durable_engine, durable_steward, durable_janitor;
