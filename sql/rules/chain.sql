-- The chain of a session's events: what is hashed, and in which form.
set local role durable_owner;

-- SHA-256 of a stored JSON value: over the text of its jsonb, which has one form for key order, white space and
-- escapes.
create or replace function durable.content_digest(content jsonb)
returns bytea
language sql stable parallel safe
return sha256(convert_to(coalesce(content::text, ''), 'UTF8'));

comment on function durable.content_digest is 'SHA-256 of the jsonb''s text in UTF-8; of the empty text for NULL.';

revoke all on function durable.content_digest from public;
grant execute on function durable.content_digest to durable_app, durable_operator, durable_auditor, durable_engine;

-- The hash that chains an event to the one before it. Canonical form, version 1: the text of a jsonb array of text,
-- integers and hex only, so that no setting of a session (TimeZone, DateStyle, bytea_output) can change it.
-- content and metadata enter by their SHA-256, so the chain can be checked without them.
create or replace function durable.event_hash(event durable.events, previous bytea)
returns bytea
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return sha256(convert_to(
        jsonb_build_array(
            'durable_pg event 1',
            event.tenant_id,
            event.session_uid::text,
            event.user_id,
            event.seq,
            event.event_id,
            event.invocation_id,
            event.author,
            encode(durable.content_digest(event.content), 'hex'),
            encode(durable.content_digest(event.metadata), 'hex'),
            -- numeric: the last times that timestamptz holds don't fit in bigint.
            (extract(epoch from event.occurred_at) * 1000000)::numeric(20, 0),
            (extract(epoch from event.recorded_at) * 1000000)::numeric(20, 0),
            event.attempt,
            event.opening,
            event.repeatable,
            event.generation,
            to_jsonb(event.tool_calls),
            to_jsonb(event.extra_tool_calls),
            event.rewind_to,
            encode(event_hash.previous, 'hex')
        )::text,
        'UTF8'
    ));
end
$$;

comment on function durable.event_hash is
'SHA-256 over every column of the event and the previous event''s hash (NULL for the first one), in canonical form 1.';

revoke all on function durable.event_hash from public;
grant execute on function durable.event_hash to durable_app, durable_operator, durable_auditor, durable_engine;
