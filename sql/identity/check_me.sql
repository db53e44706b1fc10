-- The me argument is the result of act_as in this transaction. A text made by hand would be silently ignored,
-- and the call done as whoever the transaction acts as: refuse it (42W02).
set local role durable_owner;

create or replace function durable.check_me(me text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if durable.is_me(check_me.me) is not true then
        raise exception using
            errcode = '42W02',
            message = 'me is not the identity of this transaction',
            detail = format('me is %L', left(check_me.me, 200)),
            hint = 'Pass me => durable.act_as(tenant_id, user_id), or leave me out.',
            schema = 'durable';
    end if;
end
$$;

comment on function durable.check_me(text) is 'Raises 42W02 unless me is what act_as returned in this transaction.';

revoke all on function durable.check_me(text) from public;
grant execute on function durable.check_me(text) to
durable_app, durable_operator, durable_auditor, durable_engine, durable_steward;
