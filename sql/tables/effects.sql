-- The ledger of outside effects: a mail, a payment, a booking. A row is one try under one key, written before the tool
-- is called and finished after it. Of one key at most one row is not failed: nothing is done twice. A try that
-- certainly failed stays as it is, and the next one is a row of its own.
set local role durable_owner;

create table durable.effects (
    tenant_id durable.identifier not null,
    effect_uid uuid not null default durable.new_uid(),
    user_id durable.identifier not null,
    app_name durable.identifier not null,
    run_uid uuid not null,
    step durable.counter not null,
    ordinal durable.counter not null,
    tool durable.identifier not null,
    scope text not null,
    intent durable.identifier,
    args jsonb,
    args_digest durable.digest not null,
    failures durable.counter not null,
    idempotency_key text not null,
    provider_dedupes_for interval,
    first_begun_at timestamptz not null,
    status text not null default 'begun',
    held_by uuid not null,
    attempt durable.counter not null,
    begun_at timestamptz not null,
    lease_expires_at timestamptz not null,
    result jsonb,
    error jsonb,
    evidence durable.json_object,
    finished_at timestamptz,
    constraint effects_pkey primary key (tenant_id, effect_uid),
    constraint effects_run_is_the_users foreign key (tenant_id, user_id, run_uid)
    references durable.runs (tenant_id, user_id, run_uid),
    constraint effects_holder_is_a_run foreign key (tenant_id, held_by)
    references durable.runs (tenant_id, run_uid),
    constraint effects_intent_has_a_scope check (
        scope in ('run', 'user', 'tenant') and (scope = 'run') = (intent is null)
    ),
    constraint effects_begun_again_while_provider_dedupes check (
        case
            when begun_at = first_begun_at then true
            when not isfinite(begun_at) then false
            else (begun_at - first_begun_at < provider_dedupes_for) is true
        end
    ),
    constraint effects_only_success_has_result check (status = 'succeeded' or result is null),
    constraint effects_final_is_finished check ((status in ('succeeded', 'failed')) = (finished_at is not null))
);

-- The rule effect-once, one index a scope: of one key, one row that is not failed.
create unique index effects_once_in_a_run
on durable.effects (tenant_id, run_uid, step, tool, args_digest, ordinal)
where scope = 'run' and status <> 'failed';

create unique index effects_once_for_a_user
on durable.effects (tenant_id, user_id, app_name, intent)
where scope = 'user' and status <> 'failed';

create unique index effects_once_for_a_tenant
on durable.effects (tenant_id, app_name, intent)
where scope = 'tenant' and status <> 'failed';

-- How often a key has failed is part of what the provider is told: each count is there once.
create unique index effects_tries_in_a_run
on durable.effects (tenant_id, run_uid, step, tool, args_digest, ordinal, failures)
where scope = 'run';

create unique index effects_tries_for_a_user
on durable.effects (tenant_id, user_id, app_name, intent, failures)
where scope = 'user';

create unique index effects_tries_for_a_tenant
on durable.effects (tenant_id, app_name, intent, failures)
where scope = 'tenant';

-- What a user's own rows are found by.
create index effects_of_a_user on durable.effects (tenant_id, user_id, effect_uid);

-- What an attempt has in hand, for its renewals and its end; and what somebody may have to look into.
create index effects_open on durable.effects (tenant_id, held_by)
where status in ('begun', 'unverified');

comment on table durable.effects is
'One row for each try of an outside effect, written before the tool is called. begin_effect, finish_effect and resolve_effect write.';
comment on column durable.effects.run_uid is 'The run that made this try first.';
comment on column durable.effects.scope is 'What the key is unique in: the run, the user (and app), or the tenant (and app).';
comment on column durable.effects.intent is 'The caller''s stable name for what is meant, in Unicode''s form NFC; NULL for an effect of one run only.';
comment on column durable.effects.args is 'What the tool was called with: whoever resolves an unverified refund must see amount and recipient.';
comment on column durable.effects.failures is 'How many tries of this key had certainly failed before.';
comment on column durable.effects.idempotency_key is 'What the provider gets; made of the key and failures by the database.';
comment on column durable.effects.status is
'begun, succeeded, failed or unverified. A begun row whose lease is over counts as unverified: see effect_status.';
comment on column durable.effects.held_by is 'The run whose attempt has begun it last.';
comment on column durable.effects.attempt is 'The attempt of that run: only it may finish the effect.';

select durable.protect_rows('durable.effects');
select durable.protect_write_once('durable.effects', 'result', 'evidence', 'finished_at');
select durable.protect_frozen(
    'durable.effects',
    'tenant_id', 'effect_uid', 'user_id', 'app_name', 'run_uid', 'step', 'ordinal', 'tool', 'scope', 'intent', 'args',
    'args_digest', 'failures', 'idempotency_key', 'provider_dedupes_for', 'first_begun_at'
);
select durable.protect_transitions('durable.effects', 'effect');

-- Whoever begins a row again says when, so that the constraint above can tell whether the provider still knows the key.
create trigger _450_begun_again after update on durable.effects for each row
when (
    (old.status, new.status) = ('unverified', 'begun') and new.begun_at <= old.begun_at
    or (old.held_by, old.attempt) <> (new.held_by, new.attempt) and new.begun_at <= old.begun_at
)
execute function durable.refuse_begun_again();
alter table durable.effects enable always trigger _450_begun_again;

grant select on durable.effects to durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
grant
insert (
    tenant_id, user_id, app_name, run_uid, step, ordinal, tool, scope, intent, args, args_digest, failures,
    idempotency_key, provider_dedupes_for, first_begun_at, held_by, attempt, begun_at, lease_expires_at
),
update (status, held_by, attempt, begun_at, lease_expires_at, result, error, evidence, finished_at)
on durable.effects to durable_engine;
grant update (status, result, error, evidence, finished_at) on durable.effects to durable_steward;
grant
select (tenant_id, effect_uid, status, held_by, attempt, lease_expires_at), update (status)
on durable.effects to durable_janitor;
