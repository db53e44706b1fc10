-- Starts the run of an invocation, or takes it up where another attempt left it. For the app. Asked again it says busy,
-- or settled with the recorded result: a retry of a finished turn gets its answer. Another input under the same name is
-- refused. Locks the session row, then the run.
set local role durable_engine;

create or replace function durable.start_run(
    me text default null,
    session_uid uuid default null,
    invocation_id text default null,
    trigger text default 'user',
    input json default null,
    worker text default null,
    lease interval default '5 minutes',
    max_attempts integer default null
)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_input constant jsonb := durable.escape_json(start_run.input, 'input');
    v_holder constant text := coalesce(start_run.worker, format('%s/%s', session_user, pg_backend_pid()));
    v_session durable.sessions;
    v_run durable.runs;
    v_generation integer;
    v_lease interval;
begin
    perform durable.check_me(start_run.me);
    perform
        durable.check_identifier('invocation_id', start_run.invocation_id),
        durable.check_identifier('trigger', start_run.trigger),
        durable.check_identifier('worker', v_holder),
        durable.check_key_size('tenant_id and invocation_id', durable.current_tenant(), start_run.invocation_id);
    if start_run.max_attempts < 1 then
        perform durable.refuse_argument(
            'max_attempts',
            format('max_attempts is %s', start_run.max_attempts),
            'Allow one attempt at least, or leave it out for no limit.'
        );
    end if;
    v_lease := durable.check_lease(start_run.lease);
    perform durable.commit_durably();

    v_session := durable.lock_session(start_run.session_uid);
    v_generation := durable.current_generation(v_session, start_run.invocation_id);

    select r.* into v_run
    from durable.runs as r
    where r.tenant_id = v_session.tenant_id
        and r.session_uid = v_session.session_uid
        and r.invocation_id = start_run.invocation_id
        and r.generation = v_generation
    for no key update;
    if not found then
        insert into durable.runs as r (
            tenant_id, session_uid, user_id, invocation_id, generation, trigger, input, attempt, first_attempt,
            max_attempts, lease_holder, lease_expires_at
        )
        select
            v_session.tenant_id, v_session.session_uid, v_session.user_id,
            start_run.invocation_id, v_generation, start_run.trigger, v_input,
            -- A worker of a rewound generation must not pass for one of this run.
            1 + coalesce(max(o.attempt), 0), 1 + coalesce(max(o.attempt), 0),
            start_run.max_attempts, v_holder, clock_timestamp() + v_lease
        from durable.runs as o
        where o.tenant_id = v_session.tenant_id
            and o.session_uid = v_session.session_uid
            and o.invocation_id = start_run.invocation_id
        returning r.* into strict v_run;
        -- An append under an older snapshot, which can't see this run, trips over the update.
        update durable.sessions as s
        set updated_at = v_run.started_at
        where s.tenant_id = v_session.tenant_id and s.session_uid = v_session.session_uid;
        return durable.run_as_outcome(v_run, 'started');
    end if;

    if v_input is not null and v_run.input is distinct from v_input then
        raise exception using
            errcode = '23W07',
            message = format('the run of invocation %L was started with another input', start_run.invocation_id),
            detail = format('run %s, started at %s, %s', v_run.run_uid, v_run.started_at, v_run.status),
            hint = 'A new turn gets a new invocation_id; a retry repeats the input as it was, or leaves it out.',
            schema = 'durable',
            table = 'runs',
            column = 'input';
    end if;
    return durable.take_run(v_run, v_holder, v_lease, start_run.max_attempts);
end
$$;

comment on function durable.start_run is
'Starts the run of an invocation, takes it up again, or tells where it stands; outcome started, resumed (attempt + 1), busy (with lease_expires_at), awaiting or settled (with tools_executed, result and error). Raises 22W01, 22W02, 22W03, 23W07, 42W01, 42W02, 42W04, 55W01, 55W05 (it has no attempt left).';

revoke all on function durable.start_run from public;
grant execute on function durable.start_run to durable_app;

-- Gives an existing run to a worker, if nobody has it: interrupted, decided, or its lease is over. The attempt grows,
-- so that whoever had it before writes nothing more, whatever name its worker has. A run without an attempt left is
-- settled as failed instead. The caller holds the locks of session and run.
create or replace function durable.take_run(run durable.runs, holder text, lease interval, max_attempts integer)
returns durable.run_outcome
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run durable.runs := take_run.run;
    v_wanted durable.runs;
    v_limit constant integer := coalesce(take_run.max_attempts, v_run.max_attempts);
begin
    if v_run.settled_at is not null then
        return durable.run_as_outcome(v_run, 'settled');
    elsif v_run.status = 'awaiting' then
        return durable.run_as_outcome(v_run, 'awaiting');
    elsif durable.holds_run(v_run, v_run.attempt) then
        return durable.run_as_outcome(v_run, 'busy');
    end if;

    -- Settlement, and an append under an older snapshot, trip over this update.
    update durable.sessions as s
    set updated_at = clock_timestamp()
    where s.tenant_id = v_run.tenant_id and s.session_uid = v_run.session_uid;
    if v_run.attempt - v_run.first_attempt + 1 >= v_limit then
        perform durable.check_isolation('start_run');
        v_wanted.status := 'failed';
        v_wanted.error := durable.attempts_used_up(v_run, v_limit, v_run.interrupted_with);
        return durable.settle_locked_run(v_run, v_wanted);
    end if;
    update durable.runs as r
    set
        status = 'running',
        attempt = r.attempt + 1,
        max_attempts = v_limit,
        interrupted_with = null,
        lease_holder = take_run.holder,
        lease_expires_at = clock_timestamp() + take_run.lease
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    returning r.* into strict v_run;
    return durable.run_as_outcome(v_run, 'resumed');
end
$$;

comment on function durable.take_run is
'A run after a worker asked for it: resumed (with a new attempt), busy, awaiting, or settled. Raises 55W05 when it has no attempt left.';

revoke all on function durable.take_run from public;
