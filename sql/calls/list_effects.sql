-- The effects that the caller may see, newest first: an app its user's own and those of its tenant as a whole, an
-- operator its tenant's. Of one run: all that it asked for, also those another run has done.
set local role durable_owner;

create or replace function durable.list_effects(
    me text default null, run_uid uuid default null, status text default null
)
returns setof durable.effect_row
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform durable.check_me(list_effects.me);
    if list_effects.status not in ('begun', 'succeeded', 'failed', 'unverified') then
        perform durable.refuse_argument(
            'status',
            format('%L is no status of an effect', list_effects.status),
            'Ask for begun, succeeded, failed or unverified, or leave it out.'
        );
    end if;
    -- Three ways to the rows, each with an index of its own.
    if list_effects.run_uid is not null then
        perform durable.find_run(list_effects.run_uid);
        return query
        select l.*
        from durable.effects as e
        cross join lateral durable.effect_as_row(e, null) as l
        where e.tenant_id = durable.current_tenant()
            and e.effect_uid in (
                select c.effect_uid
                from durable.effect_calls as c
                where c.tenant_id = durable.current_tenant() and c.run_uid = list_effects.run_uid
            )
            and (list_effects.status is null or durable.effect_status(e.status, e.lease_expires_at) = list_effects.status)
        order by e.first_begun_at desc, e.effect_uid desc;
    elsif list_effects.status in ('begun', 'unverified') then
        return query
        select l.*
        from durable.effects as e
        cross join lateral durable.effect_as_row(e, null) as l
        where e.tenant_id = durable.current_tenant()
            and e.status in ('begun', 'unverified')
            and durable.effect_status(e.status, e.lease_expires_at) = list_effects.status
        order by e.first_begun_at desc, e.effect_uid desc;
    else
        return query
        select l.*
        from durable.effects as e
        cross join lateral durable.effect_as_row(e, null) as l
        where e.tenant_id = durable.current_tenant() and (list_effects.status is null or e.status = list_effects.status)
        order by e.first_begun_at desc, e.effect_uid desc;
    end if;
end
$$;

comment on function durable.list_effects is
'Effects under the caller''s own row policies, of one run or of all, of one effective status or of any. Raises 22W03, 42W01, 42W02, 42W05.';

revoke all on function durable.list_effects from public;
grant execute on function durable.list_effects to durable_app, durable_operator;
