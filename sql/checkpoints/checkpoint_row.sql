-- What save_checkpoint and load_checkpoint return.
set local role durable_owner;

create type durable.checkpoint_row as (
    run_uid uuid,
    step durable.counter,
    schema_version durable.counter,
    event_seq durable.counter,
    attempt durable.counter,
    state json,
    created_at timestamptz,
    outcome text
);

comment on type durable.checkpoint_row is
'A checkpoint as callers see it. outcome of save_checkpoint: saved, already_saved; of load_checkpoint: loaded.';

grant usage on type durable.checkpoint_row to durable_engine;
