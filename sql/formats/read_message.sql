-- What the store needs to know of a message in any format: the tools it calls, and whether it says something itself.
-- One entry a call, repeats kept, a nameless one as (unnamed). Never raises: an odd shape counts as said.
set local role durable_owner;

create or replace function durable.read_message(
    content jsonb, out tool_calls text[], out says_something boolean
)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    v_scan record;
begin
    if jsonb_typeof(read_message.content -> 'content') = 'string'
        and not read_message.content ?| array['type', 'parts', 'tool_calls', 'function_call', 'refusal', 'audio']
        and durable.adk_mark(read_message.content) is null
    then
        -- The commonest message by far, {"role": "user", "content": "hi"}, judged as the scan would.
        tool_calls := '{}';
        says_something := read_message.content ->> 'content' <> ''
            and coalesce(read_message.content ->> 'role' not in ('tool', 'function'), true);
    else
        v_scan := durable.scan_message(read_message.content, null);
        tool_calls := v_scan.tool_calls;
        says_something := v_scan.others > 0 or cardinality(v_scan.tool_calls) > 0;
    end if;
end
$$;

comment on function durable.read_message(jsonb) is
'The tools a message calls, by name in order, and whether some part is neither a function response nor a tool result.';

revoke all on function durable.read_message(jsonb) from public;
grant execute on function durable.read_message(jsonb) to durable_engine, durable_app, durable_operator, durable_auditor;
