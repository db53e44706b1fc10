-- The form in which two arguments are compared. Equal are: another order of keys, the last of duplicate keys (both by
-- jsonb), 1, 1.0 and 1e0, and texts that Unicode holds for the same (composed and decomposed accents: form NFC).
set local role durable_owner;

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

comment on function durable.canonical_json(jsonb) is
'The value with numbers without trailing zeros and texts in Unicode''s form NFC; equal values have equal text.';

revoke all on function durable.canonical_json(jsonb) from public;
grant execute on function durable.canonical_json(jsonb) to durable_engine;
