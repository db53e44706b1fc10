-- What operators and maintainers did, and what an app resolved on its own word. Written by the functions they call,
-- through back roles, in the same transaction; who and when are stamped by the database, so nobody can forge or omit a
-- row.
set local role durable_owner;

create table durable.audit_log (
    tenant_id durable.identifier not null,
    audit_uid uuid not null default durable.new_uid(),
    acted_at timestamptz not null default clock_timestamp(),
    login text not null default session_user,
    acted_by durable.identifier,
    action durable.identifier not null,
    subject_kind durable.identifier not null,
    subject_uid uuid,
    reason text not null,
    detail durable.json_object not null default '{}',
    constraint audit_log_pkey primary key (tenant_id, audit_uid),
    constraint audit_log_reason_is_given check (btrim(reason) <> '')
);

comment on table durable.audit_log is
'Acts of operators and maintainers, and effects that an app resolved; one row each, append-only. Operators read their tenant''s, auditors all, the app none.';
comment on column durable.audit_log.login is 'The login that acted, as the database knows it.';
comment on column durable.audit_log.acted_by is 'The user_id an operator acted as; NULL for a maintainer, who acts as nobody.';

select durable.protect_append_only('durable.audit_log');

grant select on durable.audit_log to durable_operator, durable_auditor;
-- Neither acted_at nor login: their defaults are the stamp.
grant insert (tenant_id, acted_by, action, subject_kind, subject_uid, reason, detail)
on durable.audit_log to durable_engine, durable_steward, durable_janitor;
