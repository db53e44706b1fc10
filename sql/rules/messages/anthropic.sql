-- Anthropic: a content block is known by its type. tool_use, server_tool_use, mcp_tool_use (and agent.*_tool_use) are
-- calls; tool_result, web_search_tool_result and every other *tool_result are results.
set local role durable_owner;

create or replace function durable.anthropic_mark(part jsonb, type text) returns text
language sql immutable parallel safe
return case
    when pg_catalog."right"(type, 8) = 'tool_use' then durable.tool_name(part -> 'name')
    when pg_catalog."right"(type, 11) = 'tool_result' then ''
end;

comment on function durable.anthropic_mark is
'The tool an Anthropic content block of this type uses; empty text for a tool result; null for any other block.';

revoke all on function durable.anthropic_mark from public;
grant execute on function durable.anthropic_mark to durable_engine, durable_app, durable_operator, durable_auditor;
