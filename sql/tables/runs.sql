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
    first_attempt durable.counter not null default 1,
    max_attempts durable.counter,
    lease_holder durable.identifier,
    lease_expires_at timestamptz not null,
    interrupted_with jsonb,
    tools_executed text[],
    result jsonb,
    error jsonb,
    started_at timestamptz not null default clock_timestamp(),
    settled_at timestamptz,
    constraint runs_pkey primary key (tenant_id, run_uid),
    constraint runs_owner_key unique (tenant_id, user_id, run_uid),
    constraint runs_one_of_an_invocation unique (tenant_id, session_uid, invocation_id, generation),
    constraint runs_session_is_the_users foreign key (tenant_id, session_uid, user_id)
    references durable.sessions (tenant_id, session_uid, user_id),
    constraint runs_attempts_count_from_1 check (
        first_attempt between 1 and attempt and coalesce(max_attempts, 1) >= 1
    ),
    constraint runs_running_has_a_holder check ((status = 'running') = (lease_holder is not null)),
    constraint runs_only_settled_has_outcome check (
        settled_at is not null or num_nonnulls(tools_executed, result, error) = 0
    ),
    constraint runs_open_is_not_settled check (
        (status in ('running', 'interrupted', 'awaiting')) = (settled_at is null)
    ),
    constraint runs_tools_are_named check (array_position(tools_executed, null) is null)
);

-- What a worker may take up, longest waiting first.
create index runs_interrupted on durable.runs (lease_expires_at)
where status = 'interrupted';

create index runs_running on durable.runs (lease_expires_at)
where status = 'running';

comment on table durable.runs is
'One row for each invocation that is or was executed. The app reads its user''s own; start_run and settle_run write.';
comment on column durable.runs.generation is 'How many rewinds had removed the invocation''s opening message when it started.';
comment on column durable.runs.attempt is 'The fencing token: grows each time that a worker takes the run; a write that carries another is refused.';
comment on column durable.runs.first_attempt is 'The attempt it started with: 1, or more after a rewind of its invocation.';
comment on column durable.runs.max_attempts is
'How many attempts it may have; the interruption of the last one settles it as failed. NULL: no limit.';
comment on column durable.runs.lease_holder is 'Who executes it, in the worker''s own words; only the attempt counts.';
comment on column durable.runs.lease_expires_at is
'Until when its attempt holds it, by the clock of the database; once it is over or given back, since when it waits.';
comment on column durable.runs.interrupted_with is 'What its last attempt said when it gave the run back; NULL when it died.';
comment on column durable.runs.trigger is 'What started it, in the caller''s words.';
comment on column durable.runs.tools_executed is
'The tools this run called, sorted, each once; NULL as long as nobody knows. Goes from NULL to a value exactly once.';

select durable.protect_rows('durable.runs');
select durable.protect_write_once('durable.runs', 'tools_executed', 'result', 'error', 'settled_at');
select durable.protect_frozen(
    'durable.runs',
    'tenant_id', 'run_uid', 'session_uid', 'user_id', 'invocation_id', 'generation', 'trigger', 'input', 'started_at',
    'first_attempt'
);
select durable.protect_growing('durable.runs', 'attempt');
select durable.protect_transitions('durable.runs', 'run');

grant select on durable.runs to durable_app, durable_operator, durable_auditor, durable_engine;
grant
insert (
    tenant_id, run_uid, session_uid, user_id, invocation_id, generation, trigger, input, attempt, first_attempt,
    max_attempts, lease_holder, lease_expires_at
),
update (
    status, attempt, max_attempts, lease_holder, lease_expires_at, interrupted_with, tools_executed, result, error,
    settled_at
)
on durable.runs to durable_engine;
-- For operators: calling a run off.
grant select, update (status, lease_holder, tools_executed, result, error, settled_at)
on durable.runs to durable_steward;
-- For the maintainer: where a run stands, and nothing that anybody said.
grant
select (tenant_id, run_uid, session_uid, user_id, invocation_id, status, attempt, lease_expires_at),
update (status, lease_holder)
on durable.runs to durable_janitor;
