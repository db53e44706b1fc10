-- What is known of the tools of the caller's tenant, of one app or of all. For the app and operators.
set local role durable_owner;

create or replace function durable.list_tools(me text default null, app_name text default null)
returns setof durable.tool_row
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_me(list_tools.me);
    return query
    select t.app_name, t.tool, t.replay_class, t.updated_at, 'stored'
    from durable.tools as t
    where t.tenant_id = durable.current_tenant() and (list_tools.app_name is null or t.app_name = list_tools.app_name)
    order by t.app_name, t.tool;
end
$$;

comment on function durable.list_tools is
'The stored tools, outcome stored; a tool that is not among them counts as effect. Raises 42W01, 42W02.';

revoke all on function durable.list_tools from public;
grant execute on function durable.list_tools to durable_app, durable_operator;
