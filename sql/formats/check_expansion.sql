-- jsonb writes numbers out: 1e131071 is 8 bytes as sent and 131,072 digits in every answer. A few kilobytes of them
-- would make every list they appear in too large for Postgres, for operators too. Refuse them where they come in.
set local role durable_owner;

create or replace function durable.check_expansion(value json, stored jsonb, field text)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if octet_length(check_expansion.value::text) > 134217728 then
        perform durable.refuse_large_json(check_expansion.field, 'limit 128 MB of text');
    end if;
    -- Only an exponent of three digits or more makes a number much longer than it was sent.
    if check_expansion.value::text ~ '[0-9][eE][-+]?[0-9]{3}'
        and octet_length(check_expansion.stored::text) > greatest(4096, 16 * octet_length(check_expansion.value::text))
    then
        perform durable.refuse_large_json(
            check_expansion.field, 'its numbers, written out in full, take more than 16 times its own length'
        );
    end if;
    return check_expansion.stored;
end
$$;

comment on function durable.check_expansion(json, jsonb, text) is
'stored, if it is not much longer as text than value. Raises 22W02 beyond 128 MB, or when numbers with large exponents expand it.';

revoke all on function durable.check_expansion(json, jsonb, text) from public;
grant execute on function durable.check_expansion(json, jsonb, text) to
durable_app, durable_operator, durable_engine, durable_steward;
