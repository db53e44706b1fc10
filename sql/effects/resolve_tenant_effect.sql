-- resolve_effect for operators: effects of their tenant.
set local role durable_steward;

create or replace function durable.resolve_tenant_effect(
    effect_uid uuid, status text, evidence json, result json, as_of timestamptz
)
returns durable.effect_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return durable.resolve_open_effect(
        resolve_tenant_effect.effect_uid, null, resolve_tenant_effect.status,
        resolve_tenant_effect.evidence, resolve_tenant_effect.result, resolve_tenant_effect.as_of
    );
end
$$;

comment on function durable.resolve_tenant_effect(uuid, text, json, json, timestamptz) is 'What resolve_effect does for an operator; see there.';

revoke all on function durable.resolve_tenant_effect(uuid, text, json, json, timestamptz) from public;
grant execute on function durable.resolve_tenant_effect(uuid, text, json, json, timestamptz) to durable_operator;
