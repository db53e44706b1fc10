-- Reading a message in any format, whatever its client claims of it.
set local role durable_owner;

-- What the store needs to know of a message in any format: the tools it calls, and whether it says something itself.
-- One entry a call, repeats kept, a nameless one as (unnamed). Never raises: an odd shape counts as said.
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

comment on function durable.read_message is
'The tools a message calls, by name in order, and whether some part is neither a function response nor a tool result.';

revoke all on function durable.read_message from public;
grant execute on function durable.read_message to durable_engine, durable_app, durable_operator, durable_auditor;

-- A quick look before read_message: false only when no format could find a tool call in this content. Every mark of a
-- call is a key or a type that holds one of these pieces; texts that hold one by chance are merely read in full.
create or replace function durable.may_call_tools(content jsonb)
returns boolean
language sql immutable parallel safe
return content::text ~ '_call|Call|tool_use|_code|Code|program';

comment on function durable.may_call_tools is
'False only for content in which read_message finds no tool call; NULL for NULL. One pass over the text.';

revoke all on function durable.may_call_tools from public;
grant execute on function durable.may_call_tools to durable_app, durable_operator, durable_auditor, durable_engine;

-- Walks a message once and counts what it holds, as one format sees it (adk, openai_chat, openai_responses, anthropic)
-- or, with format null, as all four do. Takes a message, a part, a list of either, or a provider's whole answer.
-- Never raises, whatever JSON it is given. A mark belongs to one format and is read in one place: one entry a call.
create or replace function durable.scan_message(
    content jsonb, format text, out tool_calls text[], out results integer, out others integer
)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    v_list jsonb;
    v_item jsonb;
    v_is_message boolean;
    v_is_result boolean;
    v_is_inside boolean;
    v_bodies jsonb[];
    v_body jsonb;
    v_part jsonb;
    v_type text;
    v_mark text;
begin
    tool_calls := '{}';
    results := 0;
    others := 0;

    -- #> '{}' unpacks a compressed value once; otherwise every step below would do it again.
    v_list := case
        when jsonb_typeof(scan_message.content) = 'array' then scan_message.content #> '{}'
        when jsonb_typeof(scan_message.content) <> 'object'
            or scan_message.content ?| array['role', 'content', 'parts', 'type'] then null
        -- A whole answer of Responses, chat completions or Gemini; Anthropic's is a message already.
        when jsonb_typeof(scan_message.content -> 'output') = 'array' then scan_message.content -> 'output'
        when jsonb_typeof(scan_message.content -> 'choices') = 'array' then scan_message.content -> 'choices'
        when jsonb_typeof(scan_message.content -> 'candidates') = 'array' then scan_message.content -> 'candidates'
    end;

    -- Few and large expressions: each one costs about a microsecond the first time a transaction meets it.
    for v_item_index in 0 .. coalesce(jsonb_array_length(v_list), 1) - 1 loop
        v_item := case
            when v_list is null then scan_message.content #> '{}'
            when v_list -> v_item_index ?| array['role', 'content', 'parts', 'type'] then v_list -> v_item_index
            -- A choice of a chat completion.
            else coalesce(nullif(v_list -> v_item_index -> 'message', 'null'), v_list -> v_item_index)
        end;
        v_is_message := jsonb_typeof(v_item) = 'object' and (
            v_item ?| array['role', 'parts', 'tool_calls']
            or v_item ? 'content' and coalesce(v_item ->> 'type', 'message') = 'message'
            or v_item ?& array['author', 'actions']
        );
        v_bodies := case
            when not v_is_message then array[v_item]
            when coalesce(nullif(v_item -> 'content', 'null'), nullif(v_item -> 'parts', 'null')) is not null then array[
                v_item, v_item -> 'parts', coalesce(v_item -> 'content' -> 'parts', v_item -> 'content'),
                v_item -> 'refusal', v_item -> 'audio'
            ]
            -- An ADK event without content carries actions and says nothing.
            when v_item ?& array['author', 'actions'] then array[v_item]
        end;
        if v_bodies is null then
            v_bodies := v_item || array(
                select f.value from jsonb_each(v_item) as f
                where f.key not in ('role', 'name', 'type', 'tool_calls', 'function_call')
            );
        end if;
        v_is_result := v_is_message and coalesce(scan_message.format = 'openai_chat', true)
            and coalesce(v_item ->> 'role' in ('tool', 'function'), false);
        if v_is_result then
            results := results + 1;
        end if;

        -- What a message says is inside it: the first body, the message itself, counts only where it bears a mark.
        v_is_inside := not v_is_message;
        foreach v_body in array v_bodies loop
            for v_part_index in 0 .. case
                when v_body is null then -1
                when jsonb_typeof(v_body) = 'array' then jsonb_array_length(v_body) - 1
                else 0
            end loop
                v_part := case when jsonb_typeof(v_body) = 'array' then v_body -> v_part_index else v_body end;
                v_type := v_part ->> 'type';
                if scan_message.format is null then
                    v_mark := coalesce(
                        durable.openai_responses_mark(v_part, v_type), durable.anthropic_mark(v_part, v_type),
                        durable.adk_mark(v_part)
                    );
                else
                    v_mark := case scan_message.format
                        when 'adk' then case
                            -- A type that marks a part outranks its keys.
                            when coalesce(
                                durable.openai_responses_mark(v_part, v_type), durable.anthropic_mark(v_part, v_type)
                            ) is null then durable.adk_mark(v_part)
                        end
                        when 'openai_responses' then durable.openai_responses_mark(v_part, v_type)
                        when 'anthropic' then durable.anthropic_mark(v_part, v_type)
                    end;
                end if;
                if v_mark <> '' then
                    tool_calls := tool_calls || v_mark;
                elsif v_is_result then
                    continue;
                elsif v_mark = '' then
                    results := results + 1;
                elsif v_is_inside and durable.part_says_something(v_part) then
                    others := others + 1;
                end if;
            end loop;
            v_is_inside := true;
        end loop;

        if v_is_message and v_item ?| array['tool_calls', 'function_call']
            and coalesce(scan_message.format = 'openai_chat', true)
        then
            tool_calls := tool_calls || durable.openai_chat_calls(v_item);
        end if;
    end loop;
end
$$;

comment on function durable.scan_message is
'Tool calls by name, in order, results and other parts of a message, as one format sees it or all four (null).';

revoke all on function durable.scan_message from public;
grant execute on function durable.scan_message to durable_engine, durable_app, durable_operator, durable_auditor;
