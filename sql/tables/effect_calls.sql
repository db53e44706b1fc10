-- Which attempt of which run asked for which effect: one row each. What was asked for again on a resume is told from
-- what was not, and the calls in the log are matched to effects one by one, also those answered by another run's
-- effect.
set local role durable_owner;

create table durable.effect_calls (
    tenant_id durable.identifier not null,
    run_uid uuid not null,
    attempt durable.counter not null,
    effect_uid uuid not null,
    user_id durable.identifier not null,
    called_at timestamptz not null default clock_timestamp(),
    constraint effect_calls_pkey primary key (tenant_id, run_uid, attempt, effect_uid),
    constraint effect_calls_run_is_the_users foreign key (tenant_id, user_id, run_uid)
    references durable.runs (tenant_id, user_id, run_uid),
    constraint effect_calls_effect_exists foreign key (tenant_id, effect_uid)
    references durable.effects (tenant_id, effect_uid)
);

comment on table durable.effect_calls is 'One row for each attempt of a run that asked for an effect; written by begin_effect.';

select durable.protect_append_only('durable.effect_calls');

grant select on durable.effect_calls to durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
grant insert (tenant_id, run_uid, attempt, effect_uid, user_id) on durable.effect_calls to durable_engine;
grant select on durable.effect_calls to durable_janitor;
