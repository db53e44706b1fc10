-- Stored jsonb -> the JSON its caller sent: the inverse of escape_json. The result is json and not jsonb, because
-- only json can carry what the escape stands for.
set local role durable_owner;

create or replace function durable.unescape_json(value jsonb)
returns json
language sql immutable parallel safe
return case
    when strpos(unescape_json.value::text, chr(65534)) = 0 then unescape_json.value::json
    else regexp_replace(
        unescape_json.value::text, chr(65534) || '([0-9a-fA-F]{4})', chr(92) || chr(92) || 'u' || chr(92) || '1', 'g'
    )::json
end;

comment on function durable.unescape_json(jsonb) is 'A stored JSON value as its caller sent it, key order and white space aside.';

revoke all on function durable.unescape_json(jsonb) from public;
grant execute on function durable.unescape_json(jsonb) to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
