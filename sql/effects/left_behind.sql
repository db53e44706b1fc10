-- The rule resume-not-rewritten: what an earlier attempt of this run did, at whatever step, and this attempt has not
-- asked for yet. A model that is asked again rewrites its arguments, wording and order; what it wants now must not be
-- taken for something new. What an attempt had asked for before it saved a checkpoint is done with, unless the caller
-- goes back there. Effects under an intent need no such care: their key survives rewriting.
set local role durable_engine;

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

comment on function durable.left_behind(durable.runs, integer) is
'The first effect of an earlier attempt after the last checkpoint that the current attempt has not asked for (of all, when step lies before it); all NULL when there is none.';

revoke all on function durable.left_behind(durable.runs, integer) from public;
