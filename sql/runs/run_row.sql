-- What list_runs returns.
set local role durable_owner;

create type durable.run_row as (
    run_uid uuid,
    session_uid uuid,
    user_id durable.identifier,
    invocation_id durable.identifier,
    generation durable.counter,
    trigger durable.identifier,
    input json,
    status text,
    attempt durable.counter,
    max_attempts durable.counter,
    lease_holder durable.identifier,
    lease_expires_at timestamptz,
    interrupted_with json,
    tools_executed text[],
    result json,
    error json,
    started_at timestamptz,
    settled_at timestamptz
);

comment on type durable.run_row is 'A run as callers see it: input, result and error equal to what was sent.';
