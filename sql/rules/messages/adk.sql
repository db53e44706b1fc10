-- ADK and Gemini: a part is known by its key, in snake_case (ADK, Python) or camelCase (REST, JavaScript).
-- A part is one call or one result at most. Beside a role, function_call belongs to an OpenAI chat message.
set local role durable_owner;

create or replace function durable.adk_mark(part jsonb) returns text
language sql immutable parallel safe
return case
    when not part ?| array[
        'function_call', 'functionCall', 'function_response', 'functionResponse',
        'tool_call', 'toolCall', 'tool_response', 'toolResponse',
        'executable_code', 'executableCode', 'code_execution_result', 'codeExecutionResult'
    ] or part ? 'role' and part -> 'function_call' <> 'null' then null
    when part @? 'strict $ ? (@.function_call != null || @.functionCall != null)'
        or part @? 'strict $ ? (@.tool_call != null || @.toolCall != null)'
        then durable.tool_name(coalesce(
            part -> 'function_call' -> 'name', part -> 'functionCall' -> 'name',
            part -> 'tool_call' -> 'tool_type', part -> 'toolCall' -> 'toolType'
        ))
    when part @? 'strict $ ? (@.executable_code != null || @.executableCode != null)' then 'code_execution'
    when part @? 'strict $ ? (@.function_response != null || @.functionResponse != null)'
        or part @? 'strict $ ? (@.tool_response != null || @.toolResponse != null)'
        or part @? 'strict $ ? (@.code_execution_result != null || @.codeExecutionResult != null)' then ''
end;

comment on function durable.adk_mark is
'The tool an ADK or Gemini part calls; empty text for a function, tool or code response; null for any other part.';

revoke all on function durable.adk_mark from public;
grant execute on function durable.adk_mark to durable_engine, durable_app, durable_operator, durable_auditor;
