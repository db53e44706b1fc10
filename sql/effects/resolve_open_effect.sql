-- Ends an unverified effect on the word of somebody who looked, and writes their act down in the audit log. For the
-- functions behind resolve_effect, under the row policies of their owners.
set local role durable_owner;

create or replace function durable.resolve_open_effect(
    effect_uid uuid, user_id text, status text, evidence json, result json, as_of timestamptz
)
returns durable.effect_row
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_result constant jsonb := nullif(durable.escape_json(resolve_open_effect.result, 'result'), 'null');
    v_evidence constant jsonb := durable.check_evidence(resolve_open_effect.evidence);
    v_effect durable.effects;
begin
    perform durable.check_finish(resolve_open_effect.status, v_result, null, array['succeeded', 'failed']);
    select e.* into v_effect
    from durable.effects as e
    where e.tenant_id = durable.current_tenant()
        and e.effect_uid = resolve_open_effect.effect_uid
        and (
            resolve_open_effect.user_id is null
            or e.user_id = resolve_open_effect.user_id
            -- Done for the tenant, and in the hands of this user's run.
            or exists (
                select
                from durable.runs as r
                where r.tenant_id = e.tenant_id and r.run_uid = e.held_by and r.user_id = resolve_open_effect.user_id
            )
        )
    for no key update of e;
    if not found then
        perform durable.refuse_effect(resolve_open_effect.effect_uid);
    elsif v_effect.status = resolve_open_effect.status
        and v_effect.evidence = v_evidence
        and v_effect.result is not distinct from v_result
    then
        return durable.effect_as_row(v_effect, 'already_resolved');
    elsif v_effect.finished_at is not null then
        perform durable.refuse_outcome(v_effect, resolve_open_effect.status);
    elsif durable.effect_status(v_effect.status, v_effect.lease_expires_at) <> 'unverified' then
        raise exception using
            errcode = '55W09',
            message = format('effect %s is in flight', v_effect.effect_uid),
            detail = format('attempt %s of run %s has it until %s', v_effect.attempt, v_effect.held_by, v_effect.lease_expires_at),
            hint = 'Its worker may still say what happened. Wait until the lease is over, then look at the provider again.',
            schema = 'durable',
            table = 'effects';
    elsif v_effect.begun_at > resolve_open_effect.as_of then
        raise exception using
            errcode = '55W09',
            message = format('effect %s was begun again since somebody looked', v_effect.effect_uid),
            detail = format('begun at %s, looked at as of %s', v_effect.begun_at, resolve_open_effect.as_of),
            hint = 'Look at the provider again.',
            schema = 'durable',
            table = 'effects';
    end if;

    update durable.effects as e
    set
        status = resolve_open_effect.status,
        result = v_result,
        error = null,
        evidence = v_evidence,
        finished_at = clock_timestamp()
    where e.tenant_id = v_effect.tenant_id and e.effect_uid = v_effect.effect_uid
    returning e.* into strict v_effect;
    insert into durable.audit_log (tenant_id, acted_by, action, subject_kind, subject_uid, reason, detail)
    values (
        v_effect.tenant_id, durable.current_user_id(), 'resolve_effect', 'effect', v_effect.effect_uid,
        left(durable.trimmed(v_evidence ->> 'seen'), 2000),
        jsonb_build_object('status', v_effect.status, 'evidence', v_evidence, 'user_id', v_effect.user_id)
    );
    return durable.effect_as_row(v_effect, 'resolved');
end
$$;

comment on function durable.resolve_open_effect(uuid, text, text, json, json, timestamptz) is
'The effect, resolved; of this user only unless user_id is NULL. Raises 22W02, 22W03, 23W02, 42W07, 55W09.';

revoke all on function durable.resolve_open_effect(uuid, text, text, json, json, timestamptz) from public;
grant execute on function durable.resolve_open_effect(uuid, text, text, json, json, timestamptz) to
durable_engine, durable_steward;
