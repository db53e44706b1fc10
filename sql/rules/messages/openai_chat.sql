-- OpenAI chat: calls stand beside the content, in tool_calls (function or custom) or the older function_call; a message
-- of role tool or function is a result as a whole. A call that gateways repeat as a content block counts there only.
set local role durable_owner;

create or replace function durable.openai_chat_calls(message jsonb) returns text[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    v_calls jsonb := openai_chat_calls.message -> 'tool_calls';
    v_call jsonb;
    v_name text;
    v_names text[] := '{}'::text[];
    v_in_blocks jsonb;
begin
    if v_calls in ('null', 'false', '""', '{}') then
        v_calls := null;
    end if;

    if v_calls is not null and jsonb_typeof(openai_chat_calls.message -> 'content') = 'array' then
        select jsonb_object_agg(coalesce(b.block ->> 'call_id', b.block ->> 'id'), durable.tool_name(b.block -> 'name'))
        into v_in_blocks
        from jsonb_array_elements(openai_chat_calls.message -> 'content') as b (block)
        where coalesce(b.block ->> 'call_id', b.block ->> 'id') is not null
            and coalesce(
                durable.openai_responses_mark(b.block, b.block ->> 'type'),
                durable.anthropic_mark(b.block, b.block ->> 'type')
            ) <> '';
    end if;

    for v_index in 0 .. case
        when v_calls is null then -1
        when jsonb_typeof(v_calls) = 'array' then jsonb_array_length(v_calls) - 1
        else 0
    end loop
        v_call := case when jsonb_typeof(v_calls) = 'array' then v_calls -> v_index else v_calls end;
        v_name := durable.tool_name(
            coalesce(v_call -> 'function' -> 'name', v_call -> 'custom' -> 'name', v_call -> 'name')
        );
        if v_in_blocks is null or v_in_blocks ->> (v_call ->> 'id') is distinct from v_name then
            v_names := v_names || v_name;
        end if;
    end loop;

    if openai_chat_calls.message ? 'role' and jsonb_typeof(openai_chat_calls.message -> 'function_call') <> 'null' then
        v_names := v_names || durable.tool_name(openai_chat_calls.message -> 'function_call' -> 'name');
    end if;
    return v_names;
end
$$;

comment on function durable.openai_chat_calls is
'The tools an OpenAI chat message calls, in order, but for those that its content blocks hold too (same id and name).';

revoke all on function durable.openai_chat_calls from public;
grant execute on function durable.openai_chat_calls to durable_engine, durable_app, durable_operator, durable_auditor;
