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
    perform durable.check_me(resolve_effect.me);
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

comment on function durable.resolve_effect is
'Resolves an unverified effect as succeeded (with result) or failed (it may then be begun again); evidence is {"channel": through what was looked, "seen": what was seen, ...}. as_of: the begun_at that was known when somebody looked; what was begun since is not resolved. outcome resolved, or already_resolved for an equal repeat; leaves an audit row. Raises 22W02, 22W03, 23W02 (it has an outcome), 42W01, 42W02, 42W07, 55W09 (its worker still has it, or it was begun again since as_of).';

revoke all on function durable.resolve_effect from public;
grant execute on function durable.resolve_effect to durable_app, durable_operator;

set local role durable_engine;

-- resolve_effect for the app: effects of its tenant and user, not those that others have done for the tenant.
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

comment on function durable.resolve_own_effect is 'What resolve_effect does for an app; see there.';

revoke all on function durable.resolve_own_effect from public;
grant execute on function durable.resolve_own_effect to durable_app;

set local role durable_steward;

-- resolve_effect for operators: effects of their tenant.
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

comment on function durable.resolve_tenant_effect is 'What resolve_effect does for an operator; see there.';

revoke all on function durable.resolve_tenant_effect from public;
grant execute on function durable.resolve_tenant_effect to durable_operator;

set local role durable_owner;

-- Ends an unverified effect on the word of somebody who looked, and writes their act down in the audit log. For the
-- functions behind resolve_effect, under the row policies of their owners.
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

comment on function durable.resolve_open_effect is
'The effect, resolved; of this user only unless user_id is NULL. Raises 22W02, 22W03, 23W02, 42W07, 55W09.';

revoke all on function durable.resolve_open_effect from public;
grant execute on function durable.resolve_open_effect to durable_engine, durable_steward;

-- Nobody says what became of an effect without saying how they know: through which channel they looked, and what they
-- saw. Who looked is stamped beside it; evidence may name somebody else as who.
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
        perform durable.refuse_argument(
            'evidence',
            format('evidence does not say %s', v_missing),
            'Pass {"channel": "Stripe dashboard", "seen": "refund re_7 of 20 EUR, succeeded"}; more keys are kept too.'
        );
    end if;
    return v_evidence;
end
$$;

comment on function durable.check_evidence is
'The stored form of evidence. Raises 22W03 unless it is an object with texts under channel and seen; 22W02.';

revoke all on function durable.check_evidence from public;
grant execute on function durable.check_evidence to durable_engine, durable_steward;
