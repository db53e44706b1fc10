-- State of one user of one app over all sessions: the keys that callers write with the prefix user:
set local role durable_owner;

create table durable.user_states (
    tenant_id durable.identifier not null,
    user_id durable.identifier not null,
    app_name durable.identifier not null,
    state durable.json_object not null default '{}',
    revision durable.counter not null default 0,
    updated_at timestamptz not null default clock_timestamp(),
    constraint user_states_pkey primary key (tenant_id, user_id, app_name),
    constraint user_states_app_exists foreign key (tenant_id, app_name) references durable.app_states
);

comment on table durable.user_states is
'State of a user of an app over all sessions; one row as soon as the user has a session. The user''s own, functions write.';

select durable.protect_rows('durable.user_states');
select durable.protect_frozen('durable.user_states', 'tenant_id', 'user_id', 'app_name');

grant select on durable.user_states to durable_app, durable_operator, durable_auditor, durable_engine;
grant insert (tenant_id, user_id, app_name), update (state, revision, updated_at) on durable.user_states to
durable_engine;
