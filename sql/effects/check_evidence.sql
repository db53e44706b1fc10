-- Nobody says what became of an effect without saying how they know: through which channel they looked, and what they
-- saw. Who looked is stamped beside it; evidence may name somebody else as who.
set local role durable_owner;

create or replace function durable.check_evidence(evidence json)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_evidence jsonb;
    v_missing text;
begin
    v_evidence := coalesce(durable.escape_object(check_evidence.evidence, 'evidence'), '{}');
    select string_agg(field.name, ', ') into v_missing
    from unnest(array['channel', 'seen']) as field (name)
    where (jsonb_typeof(v_evidence -> field.name) = 'string' and durable.trimmed(v_evidence ->> field.name) <> '') is not true;
    if v_missing is not null then
        raise exception using
            errcode = '22W03',
            message = format('evidence does not say %s', v_missing),
            hint = 'Pass {"channel": "Stripe dashboard", "seen": "refund re_7 of 20 EUR, succeeded"}; more keys are kept too.',
            schema = 'durable',
            column = 'evidence';
    end if;
    return v_evidence;
end
$$;

comment on function durable.check_evidence(json) is
'The stored form of evidence. Raises 22W03 unless it is an object with texts under channel and seen; 22W02.';

revoke all on function durable.check_evidence(json) from public;
grant execute on function durable.check_evidence(json) to durable_engine, durable_steward;
