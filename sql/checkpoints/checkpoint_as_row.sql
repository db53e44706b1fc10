-- A row of checkpoints in the form that callers get.
set local role durable_owner;

create or replace function durable.checkpoint_as_row(checkpoint durable.checkpoints, outcome text)
returns durable.checkpoint_row
language sql stable
begin atomic
    select
        (checkpoint).run_uid,
        (checkpoint).step,
        (checkpoint).schema_version,
        (checkpoint).event_seq,
        (checkpoint).attempt,
        durable.unescape_json((checkpoint).state),
        (checkpoint).created_at,
        checkpoint_as_row.outcome;
end;

comment on function durable.checkpoint_as_row(durable.checkpoints, text) is 'A checkpoint as callers see it.';

revoke all on function durable.checkpoint_as_row(durable.checkpoints, text) from public;
grant execute on function durable.checkpoint_as_row(durable.checkpoints, text) to
durable_app, durable_operator, durable_engine;
