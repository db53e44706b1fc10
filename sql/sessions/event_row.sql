-- What read_events returns.
set local role durable_owner;

create type durable.event_row as (
    seq durable.counter,
    event_id durable.identifier,
    invocation_id durable.identifier,
    author durable.identifier,
    content json,
    metadata json,
    occurred_at timestamptz,
    recorded_at timestamptz,
    attempt durable.counter,
    opening boolean,
    repeatable boolean,
    generation durable.counter,
    tool_calls text[],
    extra_tool_calls text[],
    rewind_to durable.counter,
    hash durable.digest
);

comment on type durable.event_row is 'An event as callers see it: content and metadata equal to what was sent.';
