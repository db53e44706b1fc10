-- The loud half of current_tenant and current_user_id: reached only when the transaction carries no identity.
-- STABLE, so that a plan over an empty table meets it too.
set local role durable_owner;

create or replace function durable.identity_missing()
returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '42W01',
        message = 'no identity is set in this transaction',
        detail = 'Every read and write of durable_pg happens as one tenant and one user.',
        hint = 'Call durable.act_as(tenant_id, user_id) first in the same transaction, or pass me => durable.act_as(tenant_id, user_id).',
        schema = 'durable';
end
$$;

comment on function durable.identity_missing() is 'Raises 42W01; never returns.';

revoke all on function durable.identity_missing() from public;
grant execute on function durable.identity_missing() to
durable_app, durable_operator, durable_maintainer, durable_auditor, durable_engine, durable_steward, durable_janitor;
