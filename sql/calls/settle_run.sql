-- Settles a run for good: its status, result, error and the tools it called. For the app, as the attempt that holds the
-- run. Takes the locks an append takes, session then run, and updates the session: so no call can be recorded that the
-- settled value leaves out.
set local role durable_engine;

create or replace function durable.settle_run(
    me text default null,
    run_uid uuid default null,
    attempt integer default null,
    status text default null,
    result json default null,
    error json default null,
    tools_executed text[] default null
)
returns durable.run_outcome
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_wanted durable.runs;
    v_run durable.runs;
begin
    perform durable.check_me(settle_run.me);
    perform durable.check_isolation('settle_run');
    v_wanted.status := settle_run.status;
    v_wanted.result := durable.escape_json(settle_run.result, 'result');
    v_wanted.error := durable.escape_json(settle_run.error, 'error');
    if settle_run.tools_executed is not null then
        select coalesce(array_agg(distinct tool.name collate "C" order by tool.name collate "C"), '{}')
        into v_wanted.tools_executed
        from unnest(durable.check_tool_names(settle_run.tools_executed, 'tools_executed')) as tool (name);
    end if;

    v_run := durable.lock_run(settle_run.run_uid);
    if settle_run.status is null or settle_run.status not in ('succeeded', 'failed', 'cancelled') then
        perform durable.refuse_argument(
            'status',
            format('%s is no status that settles a run', coalesce(quote_literal(settle_run.status), 'NULL')),
            'Settle as succeeded, failed (given up) or cancelled (called off).'
        );
    end if;
    if v_run.settled_at is not null and coalesce(settle_run.attempt = v_run.attempt, true) then
        perform durable.check_same_outcome(v_run, v_wanted);
        return durable.run_as_outcome(v_run, 'already_settled');
    end if;
    if durable.holds_run(v_run, settle_run.attempt) is not true then
        perform durable.refuse_attempt(v_run, settle_run.attempt);
    end if;
    return durable.settle_locked_run(v_run, v_wanted);
end
$$;

comment on function durable.settle_run is
'Settles a run; outcome settled, or already_settled for an equal repeat. tools_executed stays NULL when nothing but user texts is recorded and none are given. Raises 22W02, 22W03, 23W02 (another tools_executed; DETAIL shows the stored one), 23W08, 42W01, 42W02, 42W05, 55W03, 55W04, 55W05.';

revoke all on function durable.settle_run from public;
grant execute on function durable.settle_run to durable_app;

set local role durable_owner;

-- A settled run settles again only as it did: an equal repeat is harmless, whatever would change the outcome is
-- refused, and the loser of a race is told what is stored.
create or replace function durable.check_same_outcome(run durable.runs, wanted durable.runs)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if wanted.tools_executed is not null and wanted.tools_executed is distinct from run.tools_executed then
        raise exception using
            errcode = '23W02',
            message = format('tools_executed of run %s is settled already', run.run_uid),
            detail = format('stored: %s; refused: %s', coalesce(run.tools_executed::text, 'NULL'), wanted.tools_executed),
            hint = 'Keep the stored value. Writing the same value again is accepted.',
            schema = 'durable',
            table = 'runs',
            column = 'tools_executed',
            constraint = '_200_write_once';
    end if;
    if wanted.status <> run.status or wanted.result is distinct from run.result or wanted.error is distinct from run.error then
        raise exception using
            errcode = '55W03',
            message = format('run %s has %s already, with another outcome', run.run_uid, run.status),
            detail = format(
                'settled at %s; it differs in %s',
                run.settled_at,
                concat_ws(
                    ', ',
                    case when wanted.status <> run.status then 'status' end,
                    case when wanted.result is distinct from run.result then 'result' end,
                    case when wanted.error is distinct from run.error then 'error' end
                )
            ),
            hint = 'Settling is final. start_run returns the stored outcome.',
            schema = 'durable',
            table = 'runs';
    end if;
end
$$;

comment on function durable.check_same_outcome is
'Raises 23W02 for another tools_executed and 55W03 for another status, result or error than the settled run has.';

revoke all on function durable.check_same_outcome from public;
grant execute on function durable.check_same_outcome to durable_engine, durable_steward;
