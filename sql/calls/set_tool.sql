-- Sets the replay class of a tool, looser ones included. For operators, with a reason.
set local role durable_steward;

create or replace function durable.set_tool(
    me text default null,
    app_name text default null,
    tool text default null,
    replay_class text default null,
    reason text default null
)
returns durable.tool_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_me(set_tool.me);
    return durable.write_tool(
        set_tool.app_name, set_tool.tool, set_tool.replay_class, false, durable.check_reason(set_tool.reason)
    );
end
$$;

comment on function durable.set_tool is
'Stores the class of one tool whatever was stored before; outcome written or unchanged. Leaves an audit row. Raises 22W01, 22W03, 42W01, 42W02.';

revoke all on function durable.set_tool from public;
grant execute on function durable.set_tool to durable_operator;
