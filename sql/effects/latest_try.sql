-- The newest row under the key of an effect, locked; all NULL when there is none.
set local role durable_engine;

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

comment on function durable.latest_try(durable.effects) is 'The row with the most failures under the key of this effect, locked FOR NO KEY UPDATE.';

revoke all on function durable.latest_try(durable.effects) from public;
