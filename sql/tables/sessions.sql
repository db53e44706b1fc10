-- One conversation of one user in one app. The row also carries the head of its event log (last_seq, head_hash), which
-- every append and every settlement updates: that is the lock which puts them in one order.
set local role durable_owner;

create table durable.sessions (
    tenant_id durable.identifier not null,
    session_uid uuid not null default durable.new_uid(),
    app_name durable.identifier not null,
    user_id durable.identifier not null,
    session_id durable.identifier not null,
    state durable.json_object not null default '{}',
    opened_with durable.json_object,
    revision durable.counter not null default 0,
    last_seq durable.counter not null default 0,
    head_hash durable.digest,
    rewinds durable.counter not null default 0,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    closed_at timestamptz,
    close_reason text,
    constraint sessions_pkey primary key (tenant_id, session_uid),
    constraint sessions_owner_key unique (tenant_id, session_uid, user_id),
    constraint sessions_user_state_exists foreign key (tenant_id, user_id, app_name) references durable.user_states,
    constraint sessions_head_belongs_to_events check ((last_seq = 0) = (head_hash is null)),
    constraint sessions_only_closed_has_reason check (close_reason is null or closed_at is not null)
);

-- A closed session's name is free again. Names of other tenants and users never meet.
create unique index sessions_one_open_of_a_name
on durable.sessions (tenant_id, user_id, app_name, session_id)
where closed_at is null;

comment on table durable.sessions is
'Conversations. The app reads its user''s own; functions write. Rows are never deleted by an application: closing hides them.';
comment on column durable.sessions.opened_with is
'The initial state as open_session got it, but for temp: keys: a repeated open with another one is refused, not lost.';
comment on column durable.sessions.revision is 'Grows by one with every append; a writer that expects another one is stale.';
comment on column durable.sessions.last_seq is 'The seq of the newest event; gapless from 1.';
comment on column durable.sessions.head_hash is 'The hash of the newest event: a cut tail shows.';
comment on column durable.sessions.rewinds is 'How many events of this session are rewinds.';

select durable.protect_rows('durable.sessions');
select durable.protect_write_once('durable.sessions', 'closed_at', 'close_reason');
select durable.protect_frozen(
    'durable.sessions', 'tenant_id', 'session_uid', 'app_name', 'user_id', 'session_id', 'opened_with', 'created_at'
);

grant select on durable.sessions to durable_app, durable_operator, durable_auditor, durable_engine;
grant
insert (tenant_id, session_uid, app_name, user_id, session_id, opened_with),
update (state, revision, last_seq, head_hash, rewinds, updated_at, closed_at, close_reason)
on durable.sessions to durable_engine;
-- For operators, who call a run off under the lock of its session; and for the maintainer, who finds its app.
grant select, update (updated_at) on durable.sessions to durable_steward;
grant select (tenant_id, session_uid, app_name, closed_at) on durable.sessions to durable_janitor;
