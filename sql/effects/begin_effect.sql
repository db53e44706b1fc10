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
    v_wanted durable.effects;
    v_found durable.effects;
    v_outcome text;
begin
    if begin_effect.me is not null then
        perform durable.check_me(begin_effect.me);
    end if;
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
    v_wanted.tenant_id := v_run.tenant_id;
    v_wanted.user_id := v_run.user_id;
    v_wanted.app_name := durable.open_app_name(v_run);
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

comment on function
durable.begin_effect(text, uuid, integer, integer, text, json, integer, text, text, boolean, interval, interval) is
'Answers execute (call the tool, with this idempotency_key, then finish_effect), recorded (with result), in_flight (with lease_expires_at), unverified (then resolve_effect), or diverged (with the earlier effect that this run did here). The key is run, step, tool, args and ordinal; with intent it is user, app and intent. Raises 22W01, 22W02, 22W03, 23W10, 42W01, 42W02, 42W05, 55W01, 55W03, 55W04, 55W05.';

revoke all on function
durable.begin_effect(text, uuid, integer, integer, text, json, integer, text, text, boolean, interval, interval)
from public;
grant execute on function
durable.begin_effect(text, uuid, integer, integer, text, json, integer, text, text, boolean, interval, interval)
to durable_app;
