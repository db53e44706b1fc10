-- The fingerprint of an effect's arguments, made by the database: the same from every language. Almost all values are
-- in canonical form as jsonb writes them; the others are rewritten first.
set local role durable_owner;

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

comment on function durable.args_digest(jsonb) is
'SHA-256 over the canonical form of the arguments; no arguments count as null. Raises 22W02 for nesting beyond the server''s stack.';

revoke all on function durable.args_digest(jsonb) from public;
grant execute on function durable.args_digest(jsonb) to durable_engine;
