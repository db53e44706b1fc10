-- Stores what a program declares of its tools, all or none. For operators. Where a stored class is stricter it stays: a
-- deployment can't loosen what somebody has tightened; set_tool can.
set local role durable_steward;

create or replace function durable.declare_tools(
    me text default null, app_name text default null, tools json default null
)
returns setof durable.tool_row
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_declared constant jsonb := durable.escape_object(declare_tools.tools, 'tools');
    v_tool record;
begin
    perform durable.check_me(declare_tools.me);
    perform durable.check_identifier('app_name', declare_tools.app_name);
    if v_declared is null then
        perform durable.refuse_argument(
            'tools',
            'tools is missing',
            'Pass {"tool": "read_only" | "keyed" | "effect", ...}.'
        );
    end if;
    -- In one order, so that two deployments at once wait for each other.
    for v_tool in
        select t.key as tool, t.value #>> '{}' as replay_class
        from jsonb_each(v_declared) as t
        order by t.key collate "C"
    loop
        -- In its stored form: what a text can't hold (NUL, half a surrogate pair) is escaped, and is no name.
        if strpos(v_tool.tool, chr(65534)) > 0 then
            raise exception using
                errcode = '22W01',
                message = 'tool holds NUL, half a surrogate pair or U+FFFE',
                detail = 'field tool',
                hint = 'Names are texts as every language has them.',
                schema = 'durable',
                column = 'tool';
        end if;
        return next durable.write_tool(
            declare_tools.app_name, v_tool.tool, v_tool.replay_class, true, 'declared by the program'
        );
    end loop;
end
$$;

comment on function durable.declare_tools is
'Stores {"tool": "read_only" | "keyed" | "effect", ...} of an app; one row a tool with outcome written, unchanged or kept (what is stored is stricter). Leaves audit rows. Raises 22W01, 22W02, 22W03, 42W01, 42W02.';

revoke all on function durable.declare_tools from public;
grant execute on function durable.declare_tools to durable_operator;
