-- OpenAI Responses: an item is known by its type. Every *_call is a call (function_call, mcp_call, web_search_call),
-- every *_output and the answer to a request for approval a result. A hosted tool is named by its type:
-- local_shell_call calls local_shell.
set local role durable_owner;

create or replace function durable.openai_responses_mark(part jsonb, type text) returns text
language sql immutable parallel safe
return case
    when pg_catalog."right"(type, 5) = '_call' then case
        when type in ('function_call', 'custom_tool_call', 'mcp_call', 'tool_call', '_call') or part ? 'name'
            then durable.tool_name(part -> 'name')
        else pg_catalog."left"(type, -5)
    end
    when type = 'program' then type
    when pg_catalog."right"(type, 7) = '_output' or type = 'mcp_approval_response' then ''
end;

comment on function durable.openai_responses_mark is
'The tool an OpenAI Responses item of this type calls; empty text for the output of a call; null for any other item.';

revoke all on function durable.openai_responses_mark from public;
grant execute on function durable.openai_responses_mark to
durable_engine, durable_app, durable_operator, durable_auditor;
