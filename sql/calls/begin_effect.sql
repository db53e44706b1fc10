-- Says whether a tool with an outside effect may be called now, and records that it is about to be. For the app, as the
-- attempt that holds the run; commit before you call the tool. Of all who ask for one key, one is told execute. Locks
-- session, run and effect.
set local role durable_engine;

create or replace function durable.begin_effect(
    me text default null,
    run_uid uuid default null,
    attempt integer default null,
    step integer default 0,
    tool text default null,
    args json default null,
    ordinal integer default 0,
    intent text default null,
    scope text default null,
    args_may_differ boolean default false,
    lease interval default null,
    provider_dedupes_for interval default null
)
returns durable.begun_effect
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run durable.runs;
    v_session durable.sessions;
    v_wanted durable.effects;
    v_found durable.effects;
    v_outcome text;
begin
    perform durable.check_me(begin_effect.me);
    perform durable.check_isolation('begin_effect');
    perform durable.commit_durably();
    v_wanted.scope := coalesce(begin_effect.scope, case when begin_effect.intent is null then 'run' else 'user' end);
    perform durable.check_effect(
        begin_effect.tool, normalize(begin_effect.intent, nfc), v_wanted.scope, begin_effect.provider_dedupes_for
    );
    v_wanted.tool := begin_effect.tool;
    v_wanted.intent := normalize(begin_effect.intent, nfc);
    -- In seconds: a day is 25 hours somewhere.
    v_wanted.provider_dedupes_for := make_interval(secs => extract(epoch from begin_effect.provider_dedupes_for)::float8);
    v_wanted.step := durable.check_place(begin_effect.step, 'step');
    v_wanted.ordinal := durable.check_place(begin_effect.ordinal, 'ordinal');
    v_wanted.args := durable.escape_json(begin_effect.args, 'args');
    v_wanted.args_digest := durable.args_digest(v_wanted.args);

    v_run := durable.lock_attempt(begin_effect.run_uid, begin_effect.attempt);
    select s.* into v_session
    from durable.sessions as s
    where s.tenant_id = v_run.tenant_id and s.session_uid = v_run.session_uid;
    if v_session.closed_at is not null then
        perform durable.refuse_session(v_session.session_uid, v_session.closed_at, v_session.close_reason);
    end if;
    v_wanted.tenant_id := v_run.tenant_id;
    v_wanted.user_id := v_run.user_id;
    v_wanted.app_name := v_session.app_name;
    v_wanted.run_uid := v_run.run_uid;
    v_wanted.held_by := v_run.run_uid;
    v_wanted.attempt := v_run.attempt;
    v_wanted.begun_at := clock_timestamp();
    v_wanted.lease_expires_at := case
        when begin_effect.lease is null then v_run.lease_expires_at
        else v_wanted.begun_at + durable.check_lease(begin_effect.lease)
    end;
    perform durable.check_key_size(
        'tenant_id, user_id, app_name and intent',
        v_wanted.tenant_id, v_wanted.user_id, v_wanted.app_name, v_wanted.intent
    );

    for v_round in 1..10 loop
        v_outcome := null;
        v_wanted.begun_at := clock_timestamp();
        v_found := durable.latest_try(v_wanted);
        if v_found.effect_uid is null and v_wanted.scope = 'run' then
            v_found := durable.left_behind(v_run, v_wanted.step);
            if v_found.effect_uid is not null then
                return durable.effect_as_begun(v_found, 'diverged', v_found.args_digest = v_wanted.args_digest);
            end if;
        end if;
        if v_found.effect_uid is not null then
            perform durable.check_same_payload(v_wanted, v_found, begin_effect.args_may_differ);
        end if;
        if v_found.effect_uid is null or v_found.status = 'failed' then
            v_wanted.failures := coalesce(v_found.failures + 1, 0);
            v_found := durable.insert_effect(v_wanted);
            v_outcome := 'execute';
        end if;
        -- No row: another run was faster, and what it wrote is the answer.
        exit when v_found.effect_uid is not null;
    end loop;
    if v_found.effect_uid is null then
        raise exception using
            errcode = 'serialization_failure',
            message = 'many others begin and end the same effect',
            hint = 'Call it again.',
            schema = 'durable';
    end if;

    if v_outcome is null and durable.may_begin_again(v_found, v_wanted) then
        v_found := durable.hold_effect(v_found, v_wanted);
        v_outcome := 'execute';
    elsif v_outcome is null then
        v_outcome := case durable.effect_status(v_found.status, v_found.lease_expires_at)
            when 'succeeded' then 'recorded'
            when 'begun' then 'in_flight'
            else 'unverified'
        end;
    end if;
    -- Whoever waited for another run's lock may have waited for longer than its lease.
    if v_outcome = 'execute' and not durable.holds_run(v_run, v_run.attempt) then
        perform durable.refuse_attempt(v_run, v_run.attempt);
    end if;
    insert into durable.effect_calls (tenant_id, run_uid, attempt, effect_uid, user_id)
    values (v_run.tenant_id, v_run.run_uid, v_run.attempt, v_found.effect_uid, v_run.user_id)
    on conflict do nothing;
    return durable.effect_as_begun(v_found, v_outcome, v_found.args_digest = v_wanted.args_digest);
end
$$;

comment on function durable.begin_effect is
'Answers execute (call the tool, with this idempotency_key, then finish_effect), recorded (with result), in_flight (with lease_expires_at), unverified (then resolve_effect), or diverged (with the earlier effect that this run did here). The key is run, step, tool, args and ordinal; with intent it is user, app and intent. Raises 22W01, 22W02, 22W03, 23W10, 42W01, 42W02, 42W05, 55W01, 55W03, 55W04, 55W05.';

revoke all on function durable.begin_effect from public;
grant execute on function durable.begin_effect to durable_app;

-- The arguments of begin_effect, before any row is looked at: names, places, scope and times.
create or replace function durable.check_effect(
    tool text, intent text, scope text, provider_dedupes_for interval
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_column text;
    v_message text;
begin
    perform
        durable.check_identifier('tool', check_effect.tool),
        case when check_effect.intent is not null then durable.check_identifier('intent', check_effect.intent) end,
        durable.check_key_size('tenant_id and tool', durable.current_tenant(), check_effect.tool);
    if not check_effect.provider_dedupes_for between interval '100 milliseconds' and interval '366 days' then
        v_column := 'provider_dedupes_for';
        v_message := format('provider_dedupes_for is %s', check_effect.provider_dedupes_for);
    elsif check_effect.intent is null and check_effect.scope <> 'run' then
        v_column := 'scope';
        v_message := format('the scope %L is given and no intent', check_effect.scope);
    elsif check_effect.intent is not null and check_effect.scope not in ('user', 'tenant') then
        v_column := 'scope';
        v_message := format('%L is no scope of an intent', check_effect.scope);
    end if;
    if v_message is not null then
        perform durable.refuse_argument(
            v_column,
            v_message,
            'scope is user (the default of an intent) or tenant, and goes with an intent; provider_dedupes_for is 100 milliseconds to 366 days, such as 24 hours, or left out.'
        );
    end if;
end
$$;

comment on function durable.check_effect is 'Raises 22W01 or 22W03, naming the argument of begin_effect.';

revoke all on function durable.check_effect from public;

-- An intent means one thing: the same tool with the same arguments, unless the tool's author said that they may differ.
create or replace function durable.check_same_payload(
    wanted durable.effects, recorded durable.effects, args_may_differ boolean
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if (wanted).tool = (recorded).tool
        and ((wanted).args_digest = (recorded).args_digest or check_same_payload.args_may_differ is true)
    then
        return;
    end if;
    raise exception using
        errcode = '23W10',
        message = format(
            'the intent %L was begun %s', (wanted).intent,
            case
                when (wanted).tool <> (recorded).tool then format('for the tool %L', (recorded).tool)
                else 'with other arguments'
            end
        ),
        detail = format(
            'effect %s of run %s, %s, first begun at %s',
            (recorded).effect_uid, (recorded).run_uid,
            durable.effect_status((recorded).status, (recorded).lease_expires_at), (recorded).first_begun_at
        ),
        hint = 'If it is another thing to do, give it another intent. If a model may reword it, pass args_may_differ => true: the recorded result is then the answer.',
        schema = 'durable',
        table = 'effects',
        column = case when (wanted).tool <> (recorded).tool then 'tool' else 'args' end;
end
$$;

comment on function durable.check_same_payload is
'Raises 23W10 for another tool, or for other arguments unless they may differ.';

revoke all on function durable.check_same_payload from public;

-- An effect in the form that begin_effect returns. The attempt is told only to whoever is to call the tool and to say
-- how it ended.
create or replace function durable.effect_as_begun(effect durable.effects, outcome text, args_match boolean)
returns durable.begun_effect
language sql volatile
begin atomic
    select
        (effect).effect_uid,
        (effect).held_by,
        (effect).idempotency_key,
        effect_as_begun.outcome,
        durable.effect_status((effect).status, (effect).lease_expires_at),
        (effect).step,
        (effect).ordinal,
        (effect).tool,
        durable.unescape_json((effect).args),
        effect_as_begun.args_match,
        durable.unescape_json((effect).result),
        durable.unescape_json((effect).error),
        case when effect_as_begun.outcome = 'execute' then (effect).attempt end,
        (effect).failures,
        (effect).lease_expires_at,
        (effect).begun_at;
end;

comment on function durable.effect_as_begun is 'An effect as begin_effect returns it.';

revoke all on function durable.effect_as_begun from public;
