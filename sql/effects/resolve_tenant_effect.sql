-- resolve_effect for operators: effects of their tenant.
set local role durable_steward;

create or replace function durable.resolve_tenant_effect(effect_uid uuid, status text, evidence json, result json)
returns durable.effect_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return durable.resolve_open_effect(
        resolve_tenant_effect.effect_uid, null, resolve_tenant_effect.status,
        resolve_tenant_effect.evidence, resolve_tenant_effect.result
    );
end
$$;

comment on function durable.resolve_tenant_effect(uuid, text, json, json) is 'What resolve_effect does for an operator; see there.';

revoke all on function durable.resolve_tenant_effect(uuid, text, json, json) from public;
grant execute on function durable.resolve_tenant_effect(uuid, text, json, json) to durable_operator;
