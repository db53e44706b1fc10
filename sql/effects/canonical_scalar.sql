-- canonical_json for a text, a number, true, false or null.
set local role durable_owner;

create or replace function durable.canonical_scalar(value jsonb)
returns jsonb
language sql immutable
return case jsonb_typeof(value)
    when 'string' then to_jsonb(normalize(value #>> '{}', nfc))
    when 'number' then to_jsonb(trim_scale((value #>> '{}')::numeric))
    else value
end;

comment on function durable.canonical_scalar(jsonb) is 'The value: a text in Unicode''s form NFC, a number without trailing zeros.';

revoke all on function durable.canonical_scalar(jsonb) from public;
grant execute on function durable.canonical_scalar(jsonb) to durable_engine;
