-- An effect as calls read its status, show it, and refuse another outcome.
set local role durable_owner;

-- What the status of an effect is now: one that was begun and whose lease is over is unverified to everybody, by the
-- clock of the database, whether or not somebody has swept.
create or replace function durable.effect_status(status text, lease_expires_at timestamptz)
returns text
language sql volatile
return case
    when effect_status.status = 'begun' and effect_status.lease_expires_at <= clock_timestamp() then 'unverified'
    else effect_status.status
end;

comment on function durable.effect_status is
'The effective status of a row of durable.effects: unverified for a begun one whose lease is over.';

revoke all on function durable.effect_status from public;
grant execute on function durable.effect_status to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward, durable_janitor;

-- A row of effects in the form that callers get.
create or replace function durable.effect_as_row(effect durable.effects, outcome text)
returns durable.effect_row
language sql volatile
begin atomic
    select
        (effect).effect_uid,
        (effect).run_uid,
        (effect).user_id,
        (effect).app_name,
        (effect).step,
        (effect).ordinal,
        (effect).tool,
        (effect).scope,
        (effect).intent,
        durable.unescape_json((effect).args),
        durable.effect_status((effect).status, (effect).lease_expires_at),
        (effect).attempt,
        (effect).failures,
        (effect).idempotency_key,
        (effect).lease_expires_at,
        (effect).first_begun_at,
        (effect).begun_at,
        (effect).finished_at,
        durable.unescape_json((effect).result),
        durable.unescape_json((effect).error),
        durable.unescape_json((effect).evidence),
        effect_as_row.outcome;
end;

comment on function durable.effect_as_row is 'An effect as callers see it.';

revoke all on function durable.effect_as_row from public;
grant execute on function durable.effect_as_row to durable_app, durable_operator, durable_engine, durable_steward;

-- Raises the one answer to an effect_uid that leads to no row: the same for a foreign effect and for none.
create or replace function durable.refuse_effect(effect_uid uuid)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_effect.effect_uid is null then
        perform durable.refuse_argument(
            'effect_uid',
            'effect_uid is missing',
            'Pass the effect_uid that begin_effect or list_effects returned.'
        );
    end if;
    raise exception using
        errcode = '42W07',
        message = format('there is no effect %s here', refuse_effect.effect_uid),
        hint = 'Check tenant and user of act_as, and use the effect_uid that begin_effect returned to the same user.',
        schema = 'durable',
        table = 'effects';
end
$$;

comment on function durable.refuse_effect is 'Raises 42W07, or 22W03 for NULL.';

revoke all on function durable.refuse_effect from public;
grant execute on function durable.refuse_effect to durable_engine, durable_steward;

-- An outcome as a caller gives it: a status that the call may set, a result for what happened, an error for what did
-- not.
create or replace function durable.check_finish(status text, result jsonb, error jsonb, allowed text[])
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (check_finish.status = any (check_finish.allowed)) is not true then
        perform durable.refuse_argument(
            'status',
            format('status is %s, which is no outcome to record', coalesce(quote_literal(check_finish.status), 'NULL')),
            'succeeded: it happened. failed: it certainly did not. Whatever may have happened is unverified.',
            format('The outcomes are %s.', array_to_string(check_finish.allowed, ', '))
        );
    end if;
    if check_finish.result is not null and check_finish.status <> 'succeeded'
        or check_finish.error is not null and check_finish.status = 'succeeded'
    then
        perform durable.refuse_argument(
            case when check_finish.status = 'succeeded' then 'error' else 'result' end,
            format(
                '%s goes with no outcome %s',
                case when check_finish.status = 'succeeded' then 'an error' else 'a result' end, check_finish.status
            ),
            'A result is of what succeeded, an error of what failed or is unverified.'
        );
    end if;
end
$$;

comment on function durable.check_finish is 'Raises 22W03, naming the argument.';

revoke all on function durable.check_finish from public;
grant execute on function durable.check_finish to durable_engine, durable_steward;

-- Raises 23W02: the outcome of an effect is recorded, and another one was to take its place.
create or replace function durable.refuse_outcome(effect durable.effects, status text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '23W02',
        message = format('effect %s has %s already', (effect).effect_uid, (effect).status),
        detail = format(
            'recorded at %s%s; refused: %s%s', (effect).finished_at,
            case when (effect).evidence is not null then ' by somebody who looked' end, refuse_outcome.status,
            case when (effect).status = refuse_outcome.status then ' with another result, error or evidence' end
        ),
        hint = 'The outcome stays. If both seem true the tool may have acted twice: look at the provider, with idempotency_key.',
        schema = 'durable',
        table = 'effects',
        column = case when (effect).status = refuse_outcome.status then 'result' else 'status' end,
        constraint = '_200_write_once';
end
$$;

comment on function durable.refuse_outcome is 'Raises 23W02; DETAIL has the recorded status and the refused one.';

revoke all on function durable.refuse_outcome from public;
grant execute on function durable.refuse_outcome to durable_engine, durable_steward;
