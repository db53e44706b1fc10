-- What start_run and settle_run return.
set local role durable_owner;

create type durable.run_outcome as (
    run_uid uuid,
    attempt durable.counter,
    status text,
    outcome text,
    tools_executed text[],
    result json,
    error json
);

comment on type durable.run_outcome is
'A run after the call. outcome of start_run: started, busy (it is executing already), settled (with its result); of settle_run: settled, already_settled.';

grant usage on type durable.run_outcome to durable_engine;
