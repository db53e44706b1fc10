-- The append-only log of a session. seq is gapless and the only order; content is what was said and what identity is
-- judged by; metadata is out-of-band and never part of a duplicate check. What the message contains (opening,
-- tool_calls) is read out of content by the database, whatever the client claims.
set local role durable_owner;

create table durable.events (
    tenant_id durable.identifier not null,
    session_uid uuid not null,
    seq durable.counter not null,
    event_id durable.identifier not null,
    invocation_id durable.identifier,
    author durable.identifier not null,
    content jsonb,
    metadata durable.json_object not null default '{}',
    occurred_at timestamptz not null,
    recorded_at timestamptz not null,
    user_id durable.identifier not null,
    attempt durable.counter,
    opening boolean not null,
    repeatable boolean not null,
    generation durable.counter not null,
    tool_calls text[] not null,
    extra_tool_calls text[] not null,
    rewind_to durable.counter,
    content_digest durable.digest not null,
    hash durable.digest not null,
    hash_version smallint not null,
    constraint events_pkey primary key (tenant_id, session_uid, seq),
    constraint events_event_id_once unique (tenant_id, session_uid, event_id),
    constraint events_session_is_the_users foreign key (tenant_id, session_uid, user_id)
    references durable.sessions (tenant_id, session_uid, user_id),
    constraint events_opening_is_the_users check (
        not opening or (author = 'user' and invocation_id is not null and not repeatable)
    ),
    constraint events_seq_from_1_and_rewinds_go_back check (
        seq >= 1 and (rewind_to is null or rewind_to between 1 and seq - 1)
    )
);

-- The rule one-opening-message: one invocation is opened once, however often and from wherever it is retried.
create unique index events_one_opening_message
on durable.events (tenant_id, session_uid, invocation_id, author, generation)
where opening;

-- For settlement and verdicts, which ask what is recorded of one invocation.
create index events_by_invocation
on durable.events (tenant_id, session_uid, invocation_id, seq)
where invocation_id is not null;

create index events_rewinds
on durable.events (tenant_id, session_uid, seq)
where rewind_to is not null;

comment on table durable.events is
'What was said and done, in order of seq. Rows are added by append_event and never change. The app reads its user''s own.';
comment on column durable.events.occurred_at is 'When the caller says it happened; never used for order.';
comment on column durable.events.recorded_at is 'When the database stored it, by its own clock.';
comment on column durable.events.opening is 'True for the user message that opens its invocation.';
comment on column durable.events.repeatable is 'The caller said that this invocation may hold several user texts; never an opening message.';
comment on column durable.events.generation is 'How many rewinds had removed the invocation''s opening message when this was recorded.';
comment on column durable.events.tool_calls is 'The tools called in content, one entry a call, found by the database.';
comment on column durable.events.extra_tool_calls is 'Further tool calls the caller named; it can name more than are found, never fewer.';
comment on column durable.events.rewind_to is 'For a rewind: the first seq it takes back. Events stay; readers skip them.';
comment on column durable.events.hash is 'SHA-256 over this event and the hash before it; see durable.event_hash.';

select durable.protect_append_only('durable.events');

grant select on durable.events to durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
grant insert on durable.events to durable_engine;
