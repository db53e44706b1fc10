-- Sets tenant and user for this transaction only, and returns what the me argument of every call takes.
-- For front roles that act as somebody. Refuses a bad name (22W01) and a second identity in one transaction (42W02).
set local role durable_owner;

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
    if durable.is_identifier(act_as.tenant_id) is not true then
        perform durable.refuse_identifier('tenant_id', act_as.tenant_id);
    end if;
    if durable.is_identifier(act_as.user_id) is not true then
        perform durable.refuse_identifier('user_id', act_as.user_id);
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

comment on function durable.act_as(text, text) is
'Makes this transaction act as one tenant and user; pass its result as me, or call it once and leave me out. Transaction-local: the next transaction of the connection has no identity. Raises 22W01, 42W02.';

revoke all on function durable.act_as(text, text) from public;
grant execute on function durable.act_as(text, text) to durable_app, durable_operator;
