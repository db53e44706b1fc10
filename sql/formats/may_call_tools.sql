-- A quick look before read_message: false only when no format could find a tool call in this content. Every mark of a
-- call is a key or a type that holds one of these pieces; texts that hold one by chance are merely read in full.
set local role durable_owner;

create or replace function durable.may_call_tools(content jsonb)
returns boolean
language sql immutable parallel safe
return content::text ~ '_call|Call|tool_use|_code|Code|program';

comment on function durable.may_call_tools(jsonb) is
'False only for content in which read_message finds no tool call; NULL for NULL. One pass over the text.';

revoke all on function durable.may_call_tools(jsonb) from public;
grant execute on function durable.may_call_tools(jsonb) to
durable_app, durable_operator, durable_auditor, durable_engine;
