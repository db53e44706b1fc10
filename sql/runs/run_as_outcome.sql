-- A row of runs in the form that start_run and settle_run return.
set local role durable_engine;

create or replace function durable.run_as_outcome(run durable.runs, outcome text)
returns durable.run_outcome
language sql stable
begin atomic
    select
        (run).run_uid,
        (run).attempt,
        (run).status,
        run_as_outcome.outcome,
        (run).tools_executed,
        durable.unescape_json((run).result),
        durable.unescape_json((run).error);
end;

comment on function durable.run_as_outcome(durable.runs, text) is 'A run as start_run and settle_run return it.';

revoke all on function durable.run_as_outcome(durable.runs, text) from public;
