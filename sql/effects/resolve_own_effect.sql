-- resolve_effect for the app: effects of its tenant and user, not those that others have done for the tenant.
set local role durable_engine;

create or replace function durable.resolve_own_effect(
    effect_uid uuid, status text, evidence json, result json, as_of timestamptz
)
returns durable.effect_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return durable.resolve_open_effect(
        resolve_own_effect.effect_uid, durable.current_user_id(), resolve_own_effect.status,
        resolve_own_effect.evidence, resolve_own_effect.result, resolve_own_effect.as_of
    );
end
$$;

comment on function durable.resolve_own_effect(uuid, text, json, json, timestamptz) is 'What resolve_effect does for an app; see there.';

revoke all on function durable.resolve_own_effect(uuid, text, json, json, timestamptz) from public;
grant execute on function durable.resolve_own_effect(uuid, text, json, json, timestamptz) to durable_app;
