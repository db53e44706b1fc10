-- What list_effects, finish_effect and resolve_effect return.
set local role durable_owner;

create type durable.effect_row as (
    effect_uid uuid,
    run_uid uuid,
    user_id durable.identifier,
    app_name durable.identifier,
    step durable.counter,
    ordinal durable.counter,
    tool durable.identifier,
    scope text,
    intent durable.identifier,
    args json,
    status text,
    attempt durable.counter,
    failures durable.counter,
    idempotency_key text,
    lease_expires_at timestamptz,
    first_begun_at timestamptz,
    begun_at timestamptz,
    finished_at timestamptz,
    result json,
    error json,
    evidence json,
    outcome text
);

comment on type durable.effect_row is
'An effect as callers see it, with its effective status. outcome of finish_effect: finished, already_finished; of resolve_effect: resolved, already_resolved.';

grant usage on type durable.effect_row to durable_engine, durable_steward;
