-- State shared by all users of one app in one tenant: the keys that callers write with the prefix app:
set local role durable_owner;

create table durable.app_states (
    tenant_id durable.identifier not null,
    app_name durable.identifier not null,
    state durable.json_object not null default '{}',
    revision durable.counter not null default 0,
    updated_at timestamptz not null default clock_timestamp(),
    constraint app_states_pkey primary key (tenant_id, app_name)
);

comment on table durable.app_states is
'State shared by all users of an app; one row as soon as the app has a session. The app reads its tenant''s, functions write.';

select durable.protect_rows('durable.app_states');
select durable.protect_frozen('durable.app_states', 'tenant_id', 'app_name');

grant select on durable.app_states to durable_app, durable_operator, durable_auditor, durable_engine;
grant insert (tenant_id, app_name), update (state, revision, updated_at) on durable.app_states to durable_engine;
