-- Takes the lock that comes first: the session row. What the next statement reads is at least as new as this lock
-- under READ COMMITTED; under stricter levels a row that moved on since the snapshot gives 40001.
set local role durable_engine;

create or replace function durable.lock_session(session_uid uuid, closed_too boolean default false)
returns durable.sessions
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_session durable.sessions;
begin
    select s.* into v_session
    from durable.sessions as s
    where s.session_uid = lock_session.session_uid
    for no key update;
    if not found or (v_session.closed_at is not null and not lock_session.closed_too) then
        perform durable.refuse_session(lock_session.session_uid, v_session.closed_at, v_session.close_reason);
    end if;
    return v_session;
end
$$;

comment on function durable.lock_session(uuid, boolean) is
'The session, locked FOR NO KEY UPDATE. Raises 42W04 when the policies show none, 55W01 for a closed one unless closed_too, 22W03 for NULL.';

revoke all on function durable.lock_session(uuid, boolean) from public;
