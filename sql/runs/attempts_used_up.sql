-- The error of a run that is given up because its last attempt was interrupted: how many it had, and what the last one
-- said.
set local role durable_owner;

create or replace function durable.attempts_used_up(run durable.runs, max_attempts integer, interrupted_with jsonb)
returns jsonb
language sql stable
return jsonb_build_object(
    'reason', 'max_attempts',
    'attempts', (run).attempt - (run).first_attempt + 1,
    'max_attempts', attempts_used_up.max_attempts,
    'interrupted_with', attempts_used_up.interrupted_with
);

comment on function durable.attempts_used_up(durable.runs, integer, jsonb) is
'{"reason": "max_attempts", "attempts", "max_attempts", "interrupted_with"}: null there for an attempt that died.';

revoke all on function durable.attempts_used_up(durable.runs, integer, jsonb) from public;
grant execute on function durable.attempts_used_up(durable.runs, integer, jsonb) to durable_engine;
