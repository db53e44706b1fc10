-- Whether a part that is neither a call nor a result says something: text that isn't empty, media, data, odd shapes.
-- What is not recognised counts as said: a user's words are then never taken for silence. null is an absent field.
set local role durable_owner;

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

comment on function durable.part_says_something(jsonb) is
'Whether a part that is no call and no result says anything: not if it is null, empty or holds nothing but null.';

revoke all on function durable.part_says_something(jsonb) from public;
grant execute on function durable.part_says_something(jsonb) to
durable_engine, durable_app, durable_operator, durable_auditor;
