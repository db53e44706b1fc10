-- Says what became of an unverified effect, with evidence: the only way out of unverified beside its own worker's late
-- word. For the app (its user's own effects) and for operators (their tenant's); each half checks for itself, and
-- leaves an audit row.
set local role durable_owner;

create or replace function durable.resolve_effect(
    me text default null,
    effect_uid uuid default null,
    status text default null,
    evidence json default null,
    result json default null,
    as_of timestamptz default null
)
returns durable.effect_row
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if resolve_effect.me is not null then
        perform durable.check_me(resolve_effect.me);
    end if;
    if pg_has_role(current_user, 'durable_operator', 'USAGE') then
        return durable.resolve_tenant_effect(
            resolve_effect.effect_uid, resolve_effect.status, resolve_effect.evidence, resolve_effect.result,
            resolve_effect.as_of
        );
    end if;
    return durable.resolve_own_effect(
        resolve_effect.effect_uid, resolve_effect.status, resolve_effect.evidence, resolve_effect.result,
        resolve_effect.as_of
    );
end
$$;

comment on function durable.resolve_effect(text, uuid, text, json, json, timestamptz) is
'Resolves an unverified effect as succeeded (with result) or failed (it may then be begun again); evidence is {"channel": through what was looked, "seen": what was seen, ...}. as_of: the begun_at that was known when somebody looked; what was begun since is not resolved. outcome resolved, or already_resolved for an equal repeat; leaves an audit row. Raises 22W02, 22W03, 23W02 (it has an outcome), 42W01, 42W02, 42W07, 55W09 (its worker still has it, or it was begun again since as_of).';

revoke all on function durable.resolve_effect(text, uuid, text, json, json, timestamptz) from public;
grant execute on function durable.resolve_effect(text, uuid, text, json, json, timestamptz) to
durable_app, durable_operator;
