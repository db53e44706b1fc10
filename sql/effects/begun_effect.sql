-- What begin_effect returns.
set local role durable_owner;

create type durable.begun_effect as (
    effect_uid uuid,
    run_uid uuid,
    idempotency_key text,
    outcome text,
    status text,
    step durable.counter,
    ordinal durable.counter,
    tool durable.identifier,
    args json,
    args_match boolean,
    result json,
    error json,
    attempt durable.counter,
    failures durable.counter,
    lease_expires_at timestamptz,
    begun_at timestamptz
);

comment on type durable.begun_effect is
'outcome: execute (call the tool now, with this idempotency_key), recorded (it has happened: result), in_flight (somebody is at it until lease_expires_at), unverified (nobody knows: resolve_effect), diverged (an earlier attempt did something that this one has not asked for: step, ordinal, tool, args, status and result of that). run_uid: whose attempt has it in hand. begun_at: when it was begun last; resolve_effect takes it as as_of. The other columns are those of the effect.';

grant usage on type durable.begun_effect to durable_engine;
