-- The order of the replay classes: of two opinions on a tool the stricter counts.
set local role durable_owner;

create or replace function durable.strictness(replay_class text)
returns integer
language sql immutable parallel safe
return case strictness.replay_class when 'read_only' then 1 when 'keyed' then 2 when 'effect' then 3 end;

comment on function durable.strictness(text) is '1 for read_only, 2 for keyed, 3 for effect; NULL for anything else.';

revoke all on function durable.strictness(text) from public;
grant execute on function durable.strictness(text) to durable_steward;
