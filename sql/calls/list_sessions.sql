-- The open sessions that the caller may see, newest activity first: an app its user's own, an operator its tenant's.
set local role durable_owner;

create or replace function durable.list_sessions(me text default null, app_name text default null)
returns setof durable.session_row
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    perform durable.check_me(list_sessions.me);
    return query
    select l.*
    from durable.sessions as s
    cross join lateral durable.session_as_row(s, 'open') as l
    where s.closed_at is null
        and s.tenant_id = durable.current_tenant()
        and (list_sessions.app_name is null or s.app_name = list_sessions.app_name)
    order by s.updated_at desc, s.session_uid desc;
end
$$;

comment on function durable.list_sessions is
'Open sessions, of one app or of all, under the caller''s own row policies. Raises 42W01, 42W02.';

revoke all on function durable.list_sessions from public;
grant execute on function durable.list_sessions to durable_app, durable_operator;
