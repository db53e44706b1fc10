-- A row of runs in the form that callers get it after a change. The attempt is the token of whoever executes the run:
-- a caller who was just told that it is another's gets none to go on with by mistake.
set local role durable_owner;

create or replace function durable.run_as_outcome(run durable.runs, outcome text)
returns durable.run_outcome
language sql stable
begin atomic
    select
        (run).run_uid,
        case when run_as_outcome.outcome not in ('busy', 'awaiting') then (run).attempt end,
        (run).status,
        run_as_outcome.outcome,
        (run).tools_executed,
        durable.unescape_json((run).result),
        durable.unescape_json((run).error),
        case when (run).status = 'running' then (run).lease_expires_at end;
end;

comment on function durable.run_as_outcome(durable.runs, text) is
'A run as start_run, settle_run and their like return it; without its attempt when the outcome is busy or awaiting.';

revoke all on function durable.run_as_outcome(durable.runs, text) from public;
grant execute on function durable.run_as_outcome(durable.runs, text) to durable_engine, durable_steward;
