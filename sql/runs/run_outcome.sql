-- What the calls that change a run return.
set local role durable_owner;

create type durable.run_outcome as (
    run_uid uuid,
    attempt durable.counter,
    status text,
    outcome text,
    tools_executed text[],
    result json,
    error json,
    lease_expires_at timestamptz
);

comment on type durable.run_outcome is
'A run after the call. outcome of start_run: started, resumed, busy, awaiting (then without attempt: it is not the caller''s), settled (with its result); of settle_run and cancel_run: settled, already_settled; of renew_lease: renewed; of interrupt_run: interrupted, already_interrupted, settled.';

grant usage on type durable.run_outcome to durable_engine, durable_steward;
