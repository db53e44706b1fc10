-- What every format reads a part of a message with: the name of a called tool, and whether anything is said.
set local role durable_owner;

-- The name of a called tool, for every format: a call without a usable name is still a call.
-- Promises a text that is never null or blank, whatever JSON stands where the name should be.
create or replace function durable.tool_name(name jsonb) returns text
language sql immutable parallel safe
return coalesce(
    pg_catalog.jsonb_path_query_first(name, 'strict $ ? (@ like_regex "[^[:space:]]")') #>> '{}', '(unnamed)'
);

comment on function durable.tool_name is
'The name of a called tool as text; (unnamed) when it is missing, null, blank or not a string.';

revoke all on function durable.tool_name from public;
grant execute on function durable.tool_name to durable_engine, durable_app, durable_operator, durable_auditor;

-- Whether a part that is neither a call nor a result says something: text that isn't empty, media, data, odd shapes.
-- What is not recognised counts as said: a user's words are then never taken for silence. null is an absent field.
create or replace function durable.part_says_something(part jsonb) returns boolean
language sql immutable parallel safe
return case pg_catalog.jsonb_typeof(part)
    when 'object' then case
        when pg_catalog.jsonb_typeof(part -> 'text') <> 'string' or part -> 'text' is null
            then part @? 'strict $.* ? (@ != null)'
        else part ->> 'text' <> ''
            or part @? 'strict $.* ? (@.type() == "object" || @.type() == "array" && @.size() > 0)'
    end
    when 'string' then part #>> '{}' <> ''
    when 'array' then pg_catalog.jsonb_array_length(part) > 0
    when 'null' then false
    else part is not null
end;

comment on function durable.part_says_something is
'Whether a part that is no call and no result says anything: not if it is null, empty or holds nothing but null.';

revoke all on function durable.part_says_something from public;
grant execute on function durable.part_says_something to durable_engine, durable_app, durable_operator, durable_auditor;
