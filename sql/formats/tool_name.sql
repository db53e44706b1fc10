-- The name of a called tool, for every format: a call without a usable name is still a call.
-- Promises a text that is never null or blank, whatever JSON stands where the name should be.
set local role durable_owner;

create or replace function durable.tool_name(name jsonb) returns text
language sql immutable parallel safe
return coalesce(
    pg_catalog.jsonb_path_query_first(name, 'strict $ ? (@ like_regex "[^[:space:]]")') #>> '{}', '(unnamed)'
);

comment on function durable.tool_name(jsonb) is
'The name of a called tool as text; (unnamed) when it is missing, null, blank or not a string.';

revoke all on function durable.tool_name(jsonb) from public;
grant execute on function durable.tool_name(jsonb) to durable_engine, durable_app, durable_operator, durable_auditor;
