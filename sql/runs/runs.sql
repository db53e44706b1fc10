-- The record of executing one invocation. It is born running, settles once, and its name never comes back with another
-- answer: rows stay, keys and input are frozen, outcomes are written once, a settled row never changes.
set local role durable_owner;

create table durable.runs (
    tenant_id durable.identifier not null,
    run_uid uuid not null default durable.new_uid(),
    session_uid uuid not null,
    user_id durable.identifier not null,
    invocation_id durable.identifier not null,
    generation durable.counter not null,
    trigger durable.identifier not null,
    input jsonb,
    status text not null default 'running',
    attempt durable.counter not null default 1,
    tools_executed text[],
    result jsonb,
    error jsonb,
    started_at timestamptz not null default clock_timestamp(),
    settled_at timestamptz,
    constraint runs_pkey primary key (tenant_id, run_uid),
    constraint runs_one_of_an_invocation unique (tenant_id, session_uid, invocation_id, generation),
    constraint runs_session_is_the_users foreign key (tenant_id, session_uid, user_id)
    references durable.sessions (tenant_id, session_uid, user_id),
    constraint runs_attempt_is_positive check (attempt >= 1),
    constraint runs_only_settled_has_outcome check (
        settled_at is not null or num_nonnulls(tools_executed, result, error) = 0
    ),
    constraint runs_running_is_not_settled check ((status = 'running') = (settled_at is null)),
    constraint runs_tools_are_named check (array_position(tools_executed, null) is null)
);

-- What a user's own rows are found by: without it, one user's list reads all runs of the tenant.
create index runs_of_a_user on durable.runs (tenant_id, user_id, run_uid);

comment on table durable.runs is
'One row for each invocation that is or was executed. The app reads its user''s own; start_run and settle_run write.';
comment on column durable.runs.generation is 'How many rewinds had removed the invocation''s opening message when it started.';
comment on column durable.runs.attempt is 'The fencing token: grows with every run of the invocation; a write that carries another is refused.';
comment on column durable.runs.trigger is 'What started it, in the caller''s words.';
comment on column durable.runs.tools_executed is
'The tools this run called, sorted, each once; NULL as long as nobody knows. Goes from NULL to a value exactly once.';

select durable.protect_rows('durable.runs');
select durable.protect_write_once('durable.runs', 'tools_executed', 'result', 'error', 'settled_at');
select durable.protect_frozen(
    'durable.runs',
    'tenant_id', 'run_uid', 'session_uid', 'user_id', 'invocation_id', 'generation', 'trigger', 'input', 'started_at'
);
select durable.protect_transitions('durable.runs', 'run');

grant select on durable.runs to durable_app, durable_operator, durable_auditor, durable_engine;
grant
insert (tenant_id, run_uid, session_uid, user_id, invocation_id, generation, trigger, input, attempt),
update (status, tools_executed, result, error, settled_at)
on durable.runs to durable_engine;
