-- Tool names as a caller gives them: an array without NULLs and blanks.
set local role durable_owner;

create or replace function durable.check_tool_names(names text[], field text)
returns text[]
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
declare
    v_bad integer;
begin
    select min(tool.place) into v_bad
    from unnest(check_tool_names.names) with ordinality as tool (name, place)
    where tool.name is null or btrim(tool.name) = '';
    if v_bad is not null then
        raise exception using
            errcode = '22W03',
            message = format('%s[%s] is no tool name', check_tool_names.field, v_bad),
            hint = 'Name each tool as the agent calls it.',
            schema = 'durable',
            column = check_tool_names.field;
    end if;
    return check_tool_names.names;
end
$$;

comment on function durable.check_tool_names(text[], text) is 'The names, NULL for NULL. Raises 22W03 for a NULL or blank among them.';

revoke all on function durable.check_tool_names(text[], text) from public;
grant execute on function durable.check_tool_names(text[], text) to durable_engine;
