-- What record_step returns.
set local role durable_owner;

create type durable.recorded_step as (
    run_uid uuid,
    step durable.counter,
    event_seq durable.counter,
    event_seqs integer[],
    outcome text
);

comment on type durable.recorded_step is
'event_seqs: the seq of each event, in the order given; event_seq: the last event of the session. outcome: saved, already_saved (an equal repeat), or recorded when no state was given.';

grant usage on type durable.recorded_step to durable_engine;
