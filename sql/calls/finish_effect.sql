-- Records how an effect ended, by the attempt that has begun it last; run_uid says whose attempt that is where it is
-- not the run that made the effect. For the app. Asks for no lease: a late true outcome is worth more than none, as
-- long as nobody has begun the effect again or looked. Locks the effect only.
set local role durable_engine;

create or replace function durable.finish_effect(
    me text default null,
    effect_uid uuid default null,
    attempt integer default null,
    status text default null,
    result json default null,
    error json default null,
    run_uid uuid default null
)
returns durable.effect_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- No result and the result null are one.
    v_result constant jsonb := nullif(durable.escape_json(finish_effect.result, 'result'), 'null');
    v_error constant jsonb := nullif(durable.escape_json(finish_effect.error, 'error'), 'null');
    v_effect durable.effects;
    v_status text;
begin
    perform durable.check_me(finish_effect.me);
    perform durable.check_finish(finish_effect.status, v_result, v_error, array['succeeded', 'failed', 'unverified']);
    select e.* into v_effect
    from durable.effects as e
    where e.effect_uid = finish_effect.effect_uid
        -- Under this caller's policies: it is in the hands of one of its own runs.
        and exists (
            select from durable.runs as r where r.tenant_id = e.tenant_id and r.run_uid = e.held_by
        )
    for no key update of e;
    if not found then
        perform durable.refuse_effect(finish_effect.effect_uid);
    end if;

    if v_effect.status = finish_effect.status
        and v_effect.result is not distinct from v_result
        and (v_effect.error is not distinct from v_error or v_effect.evidence is not null)
    then
        return durable.effect_as_row(v_effect, 'already_finished');
    elsif finish_effect.attempt is distinct from v_effect.attempt
        or coalesce(finish_effect.run_uid, v_effect.run_uid) <> v_effect.held_by
    then
        raise exception using
            errcode = '55W04',
            message = format(
                '%s has not begun effect %s last',
                coalesce('attempt ' || finish_effect.attempt, 'an attempt that is not given'), v_effect.effect_uid
            ),
            detail = format(
                'it is %s, begun last by run %s',
                durable.effect_status(v_effect.status, v_effect.lease_expires_at), v_effect.held_by
            ),
            hint = 'Pass attempt and run_uid as begin_effect returned them. If another one has begun the effect since, its outcome counts.',
            schema = 'durable',
            table = 'effects';
    elsif v_effect.finished_at is not null then
        perform durable.refuse_outcome(v_effect, finish_effect.status);
    elsif v_effect.status = finish_effect.status then
        -- Unverified for another reason than before: nobody knows either way.
        return durable.effect_as_row(v_effect, 'already_finished');
    end if;
    -- That the last call did nothing says nothing of the one before it: begun again, it failed for certain only if
    -- somebody looks.
    v_status := case
        when finish_effect.status = 'failed' and v_effect.begun_at > v_effect.first_begun_at then 'unverified'
        else finish_effect.status
    end;
    update durable.effects as e
    set
        status = v_status,
        result = v_result,
        error = v_error,
        finished_at = case when v_status <> 'unverified' then clock_timestamp() end
    where e.tenant_id = v_effect.tenant_id and e.effect_uid = v_effect.effect_uid
    returning e.* into strict v_effect;
    return durable.effect_as_row(v_effect, 'finished');
end
$$;

comment on function durable.finish_effect is
'Records succeeded (with result), failed (it certainly did not happen) or unverified; failed becomes unverified where the effect was begun more than once, since it speaks of the last call only. outcome finished, or already_finished for an equal repeat. Raises 22W02, 22W03, 23W02 (another outcome is recorded), 42W01, 42W02, 42W07, 55W04 (another attempt has begun it since).';

revoke all on function durable.finish_effect from public;
grant execute on function durable.finish_effect to durable_app;
