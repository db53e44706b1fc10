-- Who a transaction acts as: one tenant and one user, set by act_as for this transaction only. Policies compare with
-- current_tenant and current_user_id, which raise 42W01 where there is no identity.
set local role durable_owner;

-- Sets tenant and user, and returns what the me argument of every call takes. For front roles that act as somebody.
-- Refuses a bad name (22W01) and a second identity in one transaction (42W02).
create or replace function durable.act_as(tenant_id text, user_id text)
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- An ended transaction leaves a setting behind as ''.
    v_tenant constant text := nullif(current_setting('durable.tenant_id', true), '');
    v_user constant text := nullif(current_setting('durable.user_id', true), '');
begin
    -- Every call runs this: one expression where all is well.
    if (durable.is_identifier(act_as.tenant_id) and durable.is_identifier(act_as.user_id)) is not true then
        perform
            durable.check_identifier('tenant_id', act_as.tenant_id),
            durable.check_identifier('user_id', act_as.user_id);
    end if;

    if v_tenant is null and v_user is null then
        -- SET LOCAL and not set_config: Citus forwards only the statement to its workers.
        execute format('set local durable.tenant_id = %L; set local durable.user_id = %L', act_as.tenant_id, act_as.user_id);
    elsif v_tenant is distinct from act_as.tenant_id or v_user is distinct from act_as.user_id then
        raise exception using
            errcode = '42W02',
            message = 'this transaction already acts as somebody else',
            detail = format('tenant %L, user %L; asked for tenant %L, user %L', v_tenant, v_user, act_as.tenant_id, act_as.user_id),
            hint = 'End the transaction first: one transaction acts as one tenant and one user.',
            schema = 'durable';
    end if;
    return jsonb_build_array(act_as.tenant_id, act_as.user_id)::text;
end
$$;

comment on function durable.act_as is
'Makes this transaction act as one tenant and user; pass its result as me, or call it once and leave me out. Transaction-local: the next transaction of the connection has no identity. Raises 22W01, 42W02.';

revoke all on function durable.act_as from public;
grant execute on function durable.act_as to durable_app, durable_operator;

-- The loud half of current_tenant and current_user_id: reached only when the transaction carries no identity.
-- STABLE, so that a plan over an empty table meets it too.
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

comment on function durable.identity_missing is 'Raises 42W01; never returns.';

revoke all on function durable.identity_missing from public;
grant execute on function durable.identity_missing to
durable_app, durable_operator, durable_maintainer, durable_auditor, durable_engine, durable_steward, durable_janitor;

-- Policies compare with it. Plain SQL without SET: the planner inlines it, so it serves as an index condition.
create or replace function durable.current_tenant()
returns text
language sql stable parallel safe
return coalesce(nullif(current_setting('durable.tenant_id', true), ''), durable.identity_missing());

comment on function durable.current_tenant is
'The tenant set by act_as for this transaction; raises 42W01 when no identity is set.';

revoke all on function durable.current_tenant from public;
grant execute on function durable.current_tenant to
durable_app, durable_operator, durable_maintainer, durable_auditor, durable_engine, durable_steward, durable_janitor;

-- As current_tenant, for the user.
create or replace function durable.current_user_id()
returns text
language sql stable parallel safe
return coalesce(nullif(current_setting('durable.user_id', true), ''), durable.identity_missing());

comment on function durable.current_user_id is
'The user set by act_as for this transaction; raises 42W01 when no identity is set.';

revoke all on function durable.current_user_id from public;
grant execute on function durable.current_user_id to
durable_app, durable_operator, durable_maintainer, durable_auditor, durable_engine, durable_steward, durable_janitor;

-- Says whether a me argument is what act_as returned in this transaction.
create or replace function durable.is_me(me text)
returns boolean
language sql stable parallel safe
return me = jsonb_build_array(durable.current_tenant(), durable.current_user_id())::text;

comment on function durable.is_me is
'True for the identity of this transaction in the form that act_as returns; NULL for NULL. Raises 42W01 without one.';

revoke all on function durable.is_me from public;
grant execute on function durable.is_me to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;

-- Raises 42W02 for a me that is not of this transaction. STABLE: an immutable one may be run while a plan is made.
create or replace function durable.refuse_me(me text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '42W02',
        message = 'me is not the identity of this transaction',
        detail = format('me is %L', left(refuse_me.me, 200)),
        hint = 'Pass me => durable.act_as(tenant_id, user_id), or leave me out.',
        schema = 'durable';
end
$$;

comment on function durable.refuse_me is 'Raises 42W02; never returns. For check_me.';

revoke all on function durable.refuse_me from public;
grant execute on function durable.refuse_me to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;

-- A me made by hand would be ignored in silence, and the call done as whoever the transaction acts as: refuse it. NULL
-- is a me left out. Plain SQL without SET: inlined, it costs no call.
create or replace function durable.check_me(me text)
returns text
language sql stable
return case when me is null or durable.is_me(me) then me else durable.refuse_me(me) end;

comment on function durable.check_me is
'The value, NULL for NULL. Raises 42W02 for a me that act_as did not return in this transaction, 42W01 without one.';

revoke all on function durable.check_me from public;
grant execute on function durable.check_me to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;

-- The policy of durable_owner on every table. Under FORCE ROW LEVEL SECURITY the owner would otherwise work on no rows
-- and be told that all went well. Policies write tenant_id = refuse_owner(): to estimate a condition on a column the
-- planner calls its stable functions, so a statement raises even where it would meet no row.
create or replace function durable.refuse_owner()
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = '42W03',
        message = 'durable_owner reads and writes no rows',
        detail = 'The owner changes the schema in migrations; rows belong to tenants and users.',
        hint = 'Read as a login in durable_auditor. In a revision, lift FORCE ROW LEVEL SECURITY, change the rows, restore it.',
        schema = 'durable';
end
$$;

comment on function durable.refuse_owner is 'Raises 42W03; the owner''s row policy on every table.';

revoke all on function durable.refuse_owner from public;
