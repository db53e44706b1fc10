-- What list_tools, declare_tools and set_tool return.
set local role durable_owner;

create type durable.tool_row as (
    app_name durable.identifier,
    tool durable.identifier,
    replay_class text,
    updated_at timestamptz,
    outcome text
);

comment on type durable.tool_row is
'A tool as callers see it. outcome of declare_tools and set_tool: written, unchanged; of declare_tools also kept (what is stored is stricter than what was declared).';

grant usage on type durable.tool_row to durable_steward;
