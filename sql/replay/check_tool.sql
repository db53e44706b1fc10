-- A tool as an operator names it: app, name and class.
set local role durable_owner;

create or replace function durable.check_tool(app_name text, tool text, replay_class text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if durable.is_identifier(check_tool.app_name) is not true then
        perform durable.refuse_identifier('app_name', check_tool.app_name);
    end if;
    if durable.is_identifier(check_tool.tool) is not true then
        perform durable.refuse_identifier('tool', check_tool.tool);
    end if;
    perform durable.check_key_size('tenant_id, app_name and tool', durable.current_tenant(), check_tool.app_name, check_tool.tool);
    if durable.strictness(check_tool.replay_class) is null then
        raise exception using
            errcode = '22W03',
            message = format(
                'replay_class is %s, which is none, for tool %L',
                coalesce(quote_literal(check_tool.replay_class), 'NULL'), check_tool.tool
            ),
            hint = 'A tool is read_only (it changes nothing), keyed (a repeat is harmless by itself) or effect.',
            schema = 'durable',
            column = 'replay_class';
    end if;
end
$$;

comment on function durable.check_tool(text, text, text) is 'Raises 22W01 or 22W03, naming the argument.';

revoke all on function durable.check_tool(text, text, text) from public;
grant execute on function durable.check_tool(text, text, text) to durable_steward;
