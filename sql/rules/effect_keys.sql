-- What an effect is known by: the digest of its arguments, and the key that its provider gets. Made by the database, so
-- that every language gets the same.
set local role durable_owner;

-- The fingerprint of an effect's arguments, made by the database: the same from every language. Almost all values are
-- in canonical form as jsonb writes them; the others are rewritten first.
create or replace function durable.args_digest(args jsonb)
returns bytea
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_text text := coalesce(args_digest.args::text, 'null');
begin
    -- A number that ends in a zero behind its point, or letters outside ASCII that are not in form NFC.
    if v_text ~ '[.][0-9]*0([^0-9]|$)' or (octet_length(v_text) <> char_length(v_text) and v_text is not nfc normalized) then
        v_text := durable.canonical_json(args_digest.args)::text;
    end if;
    return sha256(convert_to(v_text, 'UTF8'));
exception
    when statement_too_complex or program_limit_exceeded then
        perform durable.refuse_large_json('args', sqlerrm);
end
$$;

comment on function durable.args_digest is
'SHA-256 over the canonical form of the arguments; no arguments count as null. Raises 22W02 for nesting beyond the server''s stack.';

revoke all on function durable.args_digest from public;
grant execute on function durable.args_digest to durable_engine;

-- The form in which two arguments are compared. Equal are: another order of keys, the last of duplicate keys (both by
-- jsonb), 1, 1.0 and 1e0, and texts that Unicode holds for the same (composed and decomposed accents: form NFC).
create or replace function durable.canonical_json(value jsonb)
returns jsonb
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
begin
    return case jsonb_typeof(canonical_json.value)
        when 'object' then coalesce(
            (
                select jsonb_object_agg(
                    -- Two keys that Unicode holds for the same stay two: their values must both count.
                    case when m.alike = 1 then normalize(m.key, nfc) else m.key end,
                    case
                        when jsonb_typeof(m.value) in ('object', 'array') then durable.canonical_json(m.value)
                        else durable.canonical_scalar(m.value)
                    end
                )
                from (
                    select e.key, e.value, count(*) over (partition by normalize(e.key, nfc)) as alike
                    from jsonb_each(canonical_json.value) as e
                ) as m
            ),
            '{}'
        )
        when 'array' then coalesce(
            (
                select jsonb_agg(
                    case
                        when jsonb_typeof(m.value) in ('object', 'array') then durable.canonical_json(m.value)
                        else durable.canonical_scalar(m.value)
                    end
                    order by m.place
                )
                from jsonb_array_elements(canonical_json.value) with ordinality as m (value, place)
            ),
            '[]'
        )
        else durable.canonical_scalar(canonical_json.value)
    end;
end
$$;

comment on function durable.canonical_json is
'The value with numbers without trailing zeros and texts in Unicode''s form NFC; equal values have equal text.';

revoke all on function durable.canonical_json from public;
grant execute on function durable.canonical_json to durable_engine;

-- canonical_json for a text, a number, true, false or null.
create or replace function durable.canonical_scalar(value jsonb)
returns jsonb
language sql immutable
return case jsonb_typeof(value)
    when 'string' then to_jsonb(normalize(value #>> '{}', nfc))
    when 'number' then to_jsonb(trim_scale((value #>> '{}')::numeric))
    else value
end;

comment on function durable.canonical_scalar is 'The value: a text in Unicode''s form NFC, a number without trailing zeros.';

revoke all on function durable.canonical_scalar from public;
grant execute on function durable.canonical_scalar to durable_engine;

-- What a provider gets to know a repeat by: a hash over tenant, scope and key of the effect, and over how often it has
-- certainly failed, so that a provider that remembers a failure is asked anew. No personal data, and the same when the
-- row was lost with its transaction after the provider had heard.
create or replace function durable.idempotency_key(effect durable.effects)
returns text
language sql stable
return 'dpg_' || left(
    encode(
        sha256(
            convert_to(
                case (effect).scope
                    when 'run' then jsonb_build_array(
                        'run', (effect).tenant_id, (effect).run_uid, (effect).step, (effect).tool, (effect).ordinal,
                        encode((effect).args_digest, 'hex'), (effect).failures
                    )
                    when 'user' then jsonb_build_array(
                        'user', (effect).tenant_id, (effect).user_id, (effect).app_name, (effect).intent,
                        (effect).failures
                    )
                    else jsonb_build_array(
                        'tenant', (effect).tenant_id, (effect).app_name, (effect).intent, (effect).failures
                    )
                end::text,
                'UTF8'
            )
        ),
        'hex'
    ),
    48
);

comment on function durable.idempotency_key is '52 characters of ASCII, the same for the same key and count of failures.';

revoke all on function durable.idempotency_key from public;
grant execute on function durable.idempotency_key to durable_engine;
