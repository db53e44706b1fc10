-- The tools of a run with an effect of which nobody knows, now, whether it happened: begun or unverified. Those block
-- every verdict, whatever their class and key.
set local role durable_owner;

create or replace function durable.unverified_tools(run durable.runs)
returns text[]
language sql stable
return coalesce(
    (
        select array_agg(distinct e.tool::text collate "C" order by e.tool::text collate "C")
        from durable.effect_calls as c
        inner join durable.effects as e on c.tenant_id = e.tenant_id and c.effect_uid = e.effect_uid
        where c.tenant_id = (run).tenant_id and c.run_uid = (run).run_uid and e.status in ('begun', 'unverified')
    ),
    '{}'
);

comment on function durable.unverified_tools(durable.runs) is
'The distinct tools of effects that a run asked for and that are begun or unverified; {} when there is none.';

revoke all on function durable.unverified_tools(durable.runs) from public;
grant execute on function durable.unverified_tools(durable.runs) to durable_app, durable_operator, durable_auditor;
