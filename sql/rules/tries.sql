-- The rows of one key in the ledger: the newest try, the next one, one begun again, and what an earlier attempt left.
set local role durable_engine;

-- The newest row under the key of an effect, locked; all NULL when there is none.
create or replace function durable.latest_try(wanted durable.effects)
returns durable.effects
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_found durable.effects;
begin
    if (wanted).scope = 'run' then
        select e.* into v_found
        from durable.effects as e
        where e.tenant_id = (wanted).tenant_id
            and e.run_uid = (wanted).run_uid
            and e.step = (wanted).step
            and e.tool = (wanted).tool
            and e.args_digest = (wanted).args_digest
            and e.ordinal = (wanted).ordinal
            and e.scope = 'run'
        order by e.failures desc
        limit 1
        for no key update;
    elsif (wanted).scope = 'user' then
        select e.* into v_found
        from durable.effects as e
        where e.tenant_id = (wanted).tenant_id
            and e.user_id = (wanted).user_id
            and e.app_name = (wanted).app_name
            and e.intent = (wanted).intent
            and e.scope = 'user'
        order by e.failures desc
        limit 1
        for no key update;
    else
        select e.* into v_found
        from durable.effects as e
        where e.tenant_id = (wanted).tenant_id
            and e.app_name = (wanted).app_name
            and e.intent = (wanted).intent
            and e.scope = 'tenant'
        order by e.failures desc
        limit 1
        for no key update;
    end if;
    return v_found;
end
$$;

comment on function durable.latest_try is 'The row with the most failures under the key of this effect, locked FOR NO KEY UPDATE.';

revoke all on function durable.latest_try from public;

-- The rule resume-not-rewritten: what an earlier attempt of this run did, at whatever step, and this attempt has not
-- asked for yet. A model that is asked again rewrites its arguments, wording and order; what it wants now must not be
-- taken for something new. What an attempt had asked for before it saved a checkpoint is done with, unless the caller
-- goes back there. Effects under an intent need no such care: their key survives rewriting.
create or replace function durable.left_behind(run durable.runs, step integer)
returns durable.effects
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_found durable.effects;
    v_saved constant integer := coalesce(
        (
            select max(k.step)
            from durable.checkpoints as k
            where k.tenant_id = (run).tenant_id and k.run_uid = (run).run_uid
        ),
        -1
    );
begin
    if (run).attempt = (run).first_attempt then
        return null;
    end if;
    select e.* into v_found
    from durable.effects as e
    where e.tenant_id = (run).tenant_id
        and e.run_uid = (run).run_uid
        and e.scope = 'run'
        and e.status <> 'failed'
        and (
            left_behind.step <= v_saved
            -- Done with is what the attempt that saved a checkpoint had asked for itself.
            or not exists (
                select
                from durable.checkpoints as k
                inner join durable.effect_calls as d
                    on k.tenant_id = d.tenant_id and k.run_uid = d.run_uid and k.attempt = d.attempt
                where k.tenant_id = e.tenant_id
                    and k.run_uid = e.run_uid
                    and k.step >= e.step
                    and d.effect_uid = e.effect_uid
                    and d.called_at <= k.created_at
            )
        )
        and not exists (
            select
            from durable.effect_calls as c
            where c.tenant_id = e.tenant_id
                and c.run_uid = e.run_uid
                and c.attempt = (run).attempt
                and c.effect_uid = e.effect_uid
        )
    order by e.step, e.ordinal, e.first_begun_at
    limit 1;
    return v_found;
end
$$;

comment on function durable.left_behind is
'The first effect of an earlier attempt after the last checkpoint that the current attempt has not asked for (of all, when step lies before it); all NULL when there is none.';

revoke all on function durable.left_behind from public;

-- Writes the first row of a try, if nobody else was faster; then all NULL. Waits for whoever is writing the same key.
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

comment on function durable.insert_effect is 'The row, begun; all NULL when its key is taken.';

revoke all on function durable.insert_effect from public;

set local role durable_owner;

-- May an effect of which nobody knows the outcome be asked for again under the same key? Only while the provider still
-- knows the key, by the word of the tool's author at the first begin and now, and only with the same arguments.
create or replace function durable.may_begin_again(recorded durable.effects, wanted durable.effects)
returns boolean
language sql volatile
return coalesce(
    durable.effect_status((recorded).status, (recorded).lease_expires_at) = 'unverified'
    and (recorded).args_digest = (wanted).args_digest
    and clock_timestamp() - (recorded).first_begun_at < (recorded).provider_dedupes_for
    and clock_timestamp() - (recorded).first_begun_at < (wanted).provider_dedupes_for,
    false
);

comment on function durable.may_begin_again is
'True for an unverified effect with these arguments whose provider_dedupes_for, as said first and now, is not over since the first begin.';

revoke all on function durable.may_begin_again from public;
grant execute on function durable.may_begin_again to durable_engine;

set local role durable_engine;

-- Gives an unverified effect to the attempt that is to ask the provider again under the same key.
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

comment on function durable.hold_effect is 'The effect, begun again by the attempt in wanted.';

revoke all on function durable.hold_effect from public;
