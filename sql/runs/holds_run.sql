-- Does this attempt hold the run now, by the clock of the database and not by any that an application can set? The one
-- test behind every fenced write.
set local role durable_owner;

create or replace function durable.holds_run(run durable.runs, attempt integer)
returns boolean
language sql volatile
return (run).status = 'running' and (run).attempt = holds_run.attempt and (run).lease_expires_at > clock_timestamp();

comment on function durable.holds_run(durable.runs, integer) is
'True when the run is running, the attempt is its current one and the lease is not over; NULL for no attempt.';

revoke all on function durable.holds_run(durable.runs, integer) from public;
grant execute on function durable.holds_run(durable.runs, integer) to durable_engine;
