-- A session as calls find it, lock it, refuse it and show it.
set local role durable_owner;

-- A session by its uid, under the caller's own row policies; another user's is as absent as one that never was.
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

comment on function durable.find_session is
'The session. Raises 42W04 when the caller''s policies show none, 55W01 for a closed one unless closed_too, 22W03 for NULL.';

revoke all on function durable.find_session from public;
grant execute on function durable.find_session to durable_app, durable_operator, durable_auditor;

set local role durable_engine;

-- Takes the lock that comes first: the session row. What the next statement reads is at least as new as this lock
-- under READ COMMITTED; under stricter levels a row that moved on since the snapshot gives 40001.
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

comment on function durable.lock_session is
'The session, locked FOR NO KEY UPDATE. Raises 42W04 when the policies show none, 55W01 for a closed one unless closed_too, 22W03 for NULL.';

revoke all on function durable.lock_session from public;

set local role durable_owner;

-- Raises the one answer to a session_uid that leads to no row, the same for a foreign session and for none; or says
-- that the session is closed.
create or replace function durable.refuse_session(
    session_uid uuid, closed_at timestamptz default null, close_reason text default null
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_session.session_uid is null then
        perform durable.refuse_argument(
            'session_uid',
            'session_uid is missing',
            'Pass the session_uid that open_session returned.'
        );
    end if;
    if refuse_session.closed_at is not null then
        raise exception using
            errcode = '55W01',
            message = format('session %s is closed', refuse_session.session_uid),
            detail = format('closed at %s%s', refuse_session.closed_at, ', reason: ' || refuse_session.close_reason),
            hint = 'It stays closed. open_session with its name gives a new, empty session, which knows none of its invocations and event ids: a late worker must not go on there.',
            schema = 'durable',
            table = 'sessions';
    end if;
    raise exception using
        errcode = '42W04',
        message = format('there is no session %s here', refuse_session.session_uid),
        hint = 'Check tenant and user of act_as, and use the session_uid that open_session returned to the same user.',
        schema = 'durable',
        table = 'sessions';
end
$$;

comment on function durable.refuse_session is
'Raises 55W01 for a closed session, else 42W04; 22W03 for NULL.';

revoke all on function durable.refuse_session from public;
grant execute on function durable.refuse_session to durable_app, durable_operator, durable_auditor, durable_engine;

-- A row of sessions in the form that callers get; the head of the chain stays inside.
create or replace function durable.session_as_row(session durable.sessions, outcome text)
returns durable.session_row
language sql stable
begin atomic
    select
        (session).session_uid,
        (session).app_name,
        (session).user_id,
        (session).session_id,
        durable.unescape_json((session).state),
        (session).revision,
        (session).last_seq,
        (session).created_at,
        (session).updated_at,
        (session).closed_at,
        session_as_row.outcome;
end;

comment on function durable.session_as_row is 'A session as callers see it.';

revoke all on function durable.session_as_row from public;
grant execute on function durable.session_as_row to durable_app, durable_operator, durable_engine;
