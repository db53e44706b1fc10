-- What an app's tools are like, for the verdicts: an unknown tool has an effect. Written by operators only; an app that
-- could call its own refund read_only would decide on its own replays.
set local role durable_owner;

create table durable.tools (
    tenant_id durable.identifier not null,
    app_name durable.identifier not null,
    tool durable.identifier not null,
    replay_class text not null,
    updated_at timestamptz not null default clock_timestamp(),
    constraint tools_pkey primary key (tenant_id, app_name, tool),
    constraint tools_class_is_known check (replay_class in ('effect', 'keyed', 'read_only'))
);

comment on table durable.tools is
'The replay class of an app''s tools. declare_tools and set_tool write, each with an audit row; the app reads its tenant''s.';
comment on column durable.tools.replay_class is
'effect: calling it again may do something twice, unless the ledger has it under an intent. keyed: the tool itself makes a repeat harmless. read_only: it changes nothing.';

select durable.protect_frozen('durable.tools', 'tenant_id', 'app_name', 'tool');
select durable.protect_rows('durable.tools');

grant select on durable.tools to durable_app, durable_operator, durable_auditor, durable_steward;
grant insert (tenant_id, app_name, tool, replay_class), update (replay_class, updated_at)
on durable.tools to durable_steward;
