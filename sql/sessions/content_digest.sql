-- SHA-256 of a stored JSON value: over the text of its jsonb, which has one form for key order, white space and
-- escapes.
set local role durable_owner;

create or replace function durable.content_digest(content jsonb)
returns bytea
language sql stable parallel safe
return sha256(convert_to(coalesce(content::text, ''), 'UTF8'));

comment on function durable.content_digest(jsonb) is 'SHA-256 of the jsonb''s text in UTF-8; of the empty text for NULL.';

revoke all on function durable.content_digest(jsonb) from public;
grant execute on function durable.content_digest(jsonb) to
durable_app, durable_operator, durable_auditor, durable_engine;
