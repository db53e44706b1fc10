-- The user this transaction acts as; raises 42W01 where there is none. Policies compare with it.
-- Plain SQL without SET: the planner inlines it, so it serves as an index condition.
set local role durable_owner;

create or replace function durable.current_user_id()
returns text
language sql stable parallel safe
return coalesce(nullif(current_setting('durable.user_id', true), ''), durable.identity_missing());

comment on function durable.current_user_id() is
'The user set by act_as for this transaction; raises 42W01 when no identity is set.';

revoke all on function durable.current_user_id() from public;
grant execute on function durable.current_user_id() to
durable_app, durable_operator, durable_maintainer, durable_auditor, durable_engine, durable_steward, durable_janitor;
