-- Tool names as a caller gives them: an array of one dimension, without NULLs and blanks.
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
    where tool.name is null or tool.name !~ '[^[:space:]]';
    if v_bad is not null or array_ndims(check_tool_names.names) > 1 then
        raise exception using
            errcode = '22W03',
            message = case
                when v_bad is null then format('%s is an array of arrays', check_tool_names.field)
                else format('%s[%s] is no tool name', check_tool_names.field, v_bad)
            end,
            hint = 'Give a plain list with the name of each tool, as the agent calls it.',
            schema = 'durable',
            column = check_tool_names.field;
    end if;
    return check_tool_names.names;
end
$$;

comment on function durable.check_tool_names(text[], text) is 'The names, NULL for NULL. Raises 22W03 for a NULL or blank among them, or for an array of arrays.';

revoke all on function durable.check_tool_names(text[], text) from public;
grant execute on function durable.check_tool_names(text[], text) to durable_engine;
