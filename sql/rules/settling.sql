-- Settling a run: the last write, with the tools that are recorded for it.
set local role durable_owner;

-- Takes the locks of a settlement in their order: the session row, by an update that an append under an older snapshot
-- trips over, then the run row. A settled run never changes and needs no lock. Closed sessions too: a run that was
-- executing may still say how it ended.
create or replace function durable.lock_run(run_uid uuid)
returns durable.runs
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs;
begin
    select r.* into v_run from durable.runs as r where r.run_uid = lock_run.run_uid;
    if not found then
        perform durable.refuse_run(lock_run.run_uid);
    elsif v_run.settled_at is not null then
        return v_run;
    end if;
    update durable.sessions as s
    set updated_at = clock_timestamp()
    where s.tenant_id = v_run.tenant_id and s.session_uid = v_run.session_uid;
    select r.* into strict v_run
    from durable.runs as r
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    for no key update;
    return v_run;
end
$$;

comment on function durable.lock_run is
'The run, its session updated and both rows locked. Raises 42W05 when the policies show none, 22W03 for NULL.';

revoke all on function durable.lock_run from public;
grant execute on function durable.lock_run to durable_engine, durable_steward;

-- The last write of a run, by whoever has its locks and the right to end it: status, result, error, and the tools it
-- called, which must name every recorded call and are derived when not given.
create or replace function durable.settle_locked_run(run durable.runs, wanted durable.runs)
returns durable.run_outcome
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_run durable.runs := settle_locked_run.run;
    v_recorded constant text[] := durable.recorded_tools(v_run);
begin
    if wanted.tools_executed is not null and not wanted.tools_executed @> coalesce(v_recorded, '{}') then
        raise exception using
            errcode = '23W08',
            message = format('tools_executed leaves out recorded tool calls of run %s', v_run.run_uid),
            detail = format(
                'left out: %s',
                (select string_agg(tool.name, ', ') from unnest(v_recorded) as tool (name) where tool.name <> all (wanted.tools_executed))
            ),
            hint = 'Name them too, or leave tools_executed out: the database derives it from what is recorded.',
            schema = 'durable',
            table = 'runs',
            column = 'tools_executed';
    end if;

    update durable.runs as r
    set
        status = wanted.status,
        result = wanted.result,
        error = wanted.error,
        tools_executed = coalesce(wanted.tools_executed, v_recorded),
        lease_holder = null,
        settled_at = clock_timestamp()
    where r.tenant_id = v_run.tenant_id and r.run_uid = v_run.run_uid
    returning r.* into strict v_run;
    return durable.run_as_outcome(v_run, 'settled');
end
$$;

comment on function durable.settle_locked_run is
'Settles a run as wanted; outcome settled. The caller holds the locks of lock_run. Raises 23W08.';

revoke all on function durable.settle_locked_run from public;
grant execute on function durable.settle_locked_run to durable_engine, durable_steward;

-- The tools that log and ledger hold for a run, sorted, each once: found in its events, named by its caller, or asked
-- for as an effect. NULL when nothing but user texts is recorded: then nobody knows what it did, and {} would be a
-- guess.
create or replace function durable.recorded_tools(run durable.runs)
returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions;
    v_tools text[];
    v_recorded boolean;
begin
    select s.* into v_session
    from durable.sessions as s
    where s.tenant_id = run.tenant_id and s.session_uid = run.session_uid;
    select
        array_agg(distinct found.tool collate "C" order by found.tool collate "C") filter (where found.tool is not null),
        coalesce(bool_or(found.speaks), false)
    into v_tools, v_recorded
    from (
        select tool.name as tool, e.author <> 'user' or tool.name is not null as speaks
        from durable.events as e
        left join lateral (select unnest(e.tool_calls) union all select unnest(e.extra_tool_calls)) as tool (name) on true
        where e.tenant_id = run.tenant_id
            and e.session_uid = run.session_uid
            and e.invocation_id = run.invocation_id
            -- After a partial rewind an older generation may still stand in part; what stands, happened.
            and (e.generation = run.generation or (v_session.rewinds > 0 and not durable.is_rewound(v_session, e.seq)))
        union all
        select e.tool::text, true
        from durable.effect_calls as c
        inner join durable.effects as e on e.tenant_id = c.tenant_id and e.effect_uid = c.effect_uid
        where c.tenant_id = run.tenant_id and c.run_uid = run.run_uid
    ) as found;
    if not v_recorded then
        return null;
    end if;
    return coalesce(v_tools, '{}');
end
$$;

comment on function durable.recorded_tools is
'The distinct tools recorded for a run; {} when none is called; NULL when there is nothing but the user''s events.';

revoke all on function durable.recorded_tools from public;
grant execute on function durable.recorded_tools to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;

-- The error of a run that is given up because its last attempt was interrupted: how many it had, and what the last one
-- said.
create or replace function durable.attempts_used_up(run durable.runs, max_attempts integer, interrupted_with jsonb)
returns jsonb
language sql stable
return jsonb_build_object(
    'reason', 'max_attempts',
    'attempts', (run).attempt - (run).first_attempt + 1,
    'max_attempts', attempts_used_up.max_attempts,
    'interrupted_with', attempts_used_up.interrupted_with
);

comment on function durable.attempts_used_up is
'{"reason": "max_attempts", "attempts", "max_attempts", "interrupted_with"}: null there for an attempt that died.';

revoke all on function durable.attempts_used_up from public;
grant execute on function durable.attempts_used_up to durable_engine;
