-- Says whether a me argument is what act_as returned in this transaction.
set local role durable_owner;

create or replace function durable.is_me(me text)
returns boolean
language sql stable parallel safe
return me = jsonb_build_array(durable.current_tenant(), durable.current_user_id())::text;

comment on function durable.is_me(text) is 'True for the identity of this transaction in the form that act_as returns. Raises 42W01 without one.';

revoke all on function durable.is_me(text) from public;
grant execute on function durable.is_me(text) to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
