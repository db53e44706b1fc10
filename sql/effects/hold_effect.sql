-- Gives an unverified effect to the attempt that is to ask the provider again under the same key.
set local role durable_engine;

create or replace function durable.hold_effect(recorded durable.effects, wanted durable.effects)
returns durable.effects
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_effect durable.effects;
begin
    update durable.effects as e
    set
        status = 'begun',
        held_by = (wanted).held_by,
        attempt = (wanted).attempt,
        begun_at = (wanted).begun_at,
        error = null,
        lease_expires_at = (wanted).lease_expires_at
    where e.tenant_id = (recorded).tenant_id and e.effect_uid = (recorded).effect_uid
    returning e.* into strict v_effect;
    return v_effect;
end
$$;

comment on function durable.hold_effect(durable.effects, durable.effects) is 'The effect, begun again by the attempt in wanted.';

revoke all on function durable.hold_effect(durable.effects, durable.effects) from public;
