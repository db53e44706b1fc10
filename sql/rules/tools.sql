-- Writing the class of a tool, and which class is stricter.
set local role durable_steward;

-- Writes the class of a tool, with an audit row, if it differs from what is stored.
create or replace function durable.write_tool(
    app_name text, tool text, replay_class text, stricter_wins boolean, reason text
)
returns durable.tool_row
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_stored durable.tools;
    v_outcome text;
begin
    perform
        durable.check_identifier('app_name', write_tool.app_name),
        durable.check_identifier('tool', write_tool.tool),
        durable.check_key_size('tenant_id, app_name and tool', durable.current_tenant(), write_tool.app_name, write_tool.tool);
    if durable.strictness(write_tool.replay_class) is null then
        perform durable.refuse_argument(
            'replay_class',
            format(
                'replay_class is %s, which is none, for tool %L',
                coalesce(quote_literal(write_tool.replay_class), 'NULL'), write_tool.tool
            ),
            'A tool is read_only (it changes nothing), keyed (a repeat is harmless by itself) or effect.'
        );
    end if;
    insert into durable.tools as t (tenant_id, app_name, tool, replay_class)
    values (durable.current_tenant(), write_tool.app_name, write_tool.tool, write_tool.replay_class)
    on conflict do nothing
    returning t.* into v_stored;
    if found then
        v_outcome := 'written';
    else
        select t.* into strict v_stored
        from durable.tools as t
        where t.tenant_id = durable.current_tenant() and t.app_name = write_tool.app_name and t.tool = write_tool.tool
        for no key update;
        v_outcome := case
            when v_stored.replay_class = write_tool.replay_class then 'unchanged'
            when write_tool.stricter_wins
                and durable.strictness(v_stored.replay_class) > durable.strictness(write_tool.replay_class) then 'kept'
            else 'written'
        end;
    end if;
    if v_outcome = 'written' then
        insert into durable.audit_log (tenant_id, acted_by, action, subject_kind, reason, detail)
        values (
            durable.current_tenant(), durable.current_user_id(), 'write_tool', 'tool', write_tool.reason,
            jsonb_build_object(
                'app_name', write_tool.app_name, 'tool', write_tool.tool, 'replay_class', write_tool.replay_class,
                'before', nullif(v_stored.replay_class, write_tool.replay_class)
            )
        );
        update durable.tools as t
        set replay_class = write_tool.replay_class, updated_at = clock_timestamp()
        where t.tenant_id = v_stored.tenant_id and t.app_name = v_stored.app_name and t.tool = v_stored.tool
        returning t.* into strict v_stored;
    end if;
    return (v_stored.app_name, v_stored.tool, v_stored.replay_class, v_stored.updated_at, v_outcome)::durable.tool_row;
end
$$;

comment on function durable.write_tool is
'The tool; written, unchanged, or kept because the stored class is stricter. Raises 22W01, 22W03.';

revoke all on function durable.write_tool from public;

set local role durable_owner;

-- The order of the replay classes: of two opinions on a tool the stricter counts.
create or replace function durable.strictness(replay_class text)
returns integer
language sql immutable parallel safe
return case strictness.replay_class when 'read_only' then 1 when 'keyed' then 2 when 'effect' then 3 end;

comment on function durable.strictness is '1 for read_only, 2 for keyed, 3 for effect; NULL for anything else.';

revoke all on function durable.strictness from public;
grant execute on function durable.strictness to durable_steward;
