-- Writes the first row of a try, if nobody else was faster; then all NULL. Waits for whoever is writing the same key.
set local role durable_engine;

create or replace function durable.insert_effect(wanted durable.effects)
returns durable.effects
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_found durable.effects;
begin
    insert into durable.effects as e (
        tenant_id, user_id, app_name, run_uid, step, ordinal, tool, scope, intent, args, args_digest, failures,
        idempotency_key, provider_dedupes_for, first_begun_at, held_by, attempt, begun_at, lease_expires_at
    )
    values (
        (wanted).tenant_id, (wanted).user_id, (wanted).app_name, (wanted).run_uid, (wanted).step, (wanted).ordinal,
        (wanted).tool, (wanted).scope, (wanted).intent, (wanted).args, (wanted).args_digest, (wanted).failures,
        durable.idempotency_key(wanted), (wanted).provider_dedupes_for, (wanted).begun_at, (wanted).held_by,
        (wanted).attempt, (wanted).begun_at, (wanted).lease_expires_at
    )
    on conflict do nothing
    returning e.* into v_found;
    return v_found;
end
$$;

comment on function durable.insert_effect(durable.effects) is 'The row, begun; all NULL when its key is taken.';

revoke all on function durable.insert_effect(durable.effects) from public;
