-- Where a resumed run goes on from: one row a step, append-only, without gaps. The message history is not copied: it is
-- the event log up to event_seq, and state is the rest.
set local role durable_owner;

create table durable.checkpoints (
    tenant_id durable.identifier not null,
    run_uid uuid not null,
    step durable.counter not null,
    previous_step durable.counter,
    user_id durable.identifier not null,
    attempt durable.counter not null,
    schema_version durable.counter not null,
    event_seq durable.counter not null,
    state jsonb not null,
    digest durable.digest not null,
    created_at timestamptz not null default clock_timestamp(),
    constraint checkpoints_pkey primary key (tenant_id, run_uid, step),
    constraint checkpoints_run_is_the_users foreign key (tenant_id, user_id, run_uid)
    references durable.runs (tenant_id, user_id, run_uid),
    constraint checkpoints_step_before_exists foreign key (tenant_id, run_uid, previous_step)
    references durable.checkpoints (tenant_id, run_uid, step),
    constraint checkpoints_steps_have_no_gap check (
        case when step <= 1 and previous_step is null then true else (previous_step = step - 1) is true end
    )
);

comment on table durable.checkpoints is
'The state of a run after a step. Rows are added by save_checkpoint and record_step and never change.';
comment on column durable.checkpoints.step is 'From 0 or 1, one by one.';
comment on column durable.checkpoints.schema_version is 'The version of the program''s own form of state, in the caller''s count.';
comment on column durable.checkpoints.event_seq is 'The last event of the session when it was saved.';

select durable.protect_append_only('durable.checkpoints');

grant select on durable.checkpoints to durable_app, durable_operator, durable_auditor, durable_engine;
grant insert (tenant_id, run_uid, step, previous_step, user_id, attempt, schema_version, event_seq, state, digest)
on durable.checkpoints to durable_engine;
