-- A session by its uid, under the caller's own row policies; another user's is as absent as one that never was.
set local role durable_owner;

create or replace function durable.find_session(session_uid uuid, closed_too boolean default false)
returns durable.sessions
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions;
begin
    select s.* into v_session from durable.sessions as s where s.session_uid = find_session.session_uid;
    if not found or (v_session.closed_at is not null and not find_session.closed_too) then
        perform durable.refuse_session(find_session.session_uid, v_session.closed_at, v_session.close_reason);
    end if;
    return v_session;
end
$$;

comment on function durable.find_session(uuid, boolean) is
'The session. Raises 42W04 when the caller''s policies show none, 55W01 for a closed one unless closed_too, 22W03 for NULL.';

revoke all on function durable.find_session(uuid, boolean) from public;
grant execute on function durable.find_session(uuid, boolean) to durable_app, durable_operator, durable_auditor;
