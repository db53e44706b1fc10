-- Raises the one answer to a session_uid that leads to no row, the same for a foreign session and for none; or says
-- that the session is closed.
set local role durable_owner;

create or replace function durable.refuse_session(
    session_uid uuid, closed_at timestamptz default null, close_reason text default null
)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if refuse_session.session_uid is null then
        raise exception using
            errcode = '22W03',
            message = 'session_uid is missing',
            hint = 'Pass the session_uid that open_session returned.',
            schema = 'durable',
            column = 'session_uid';
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

comment on function durable.refuse_session(uuid, timestamptz, text) is
'Raises 55W01 for a closed session, else 42W04; 22W03 for NULL.';

revoke all on function durable.refuse_session(uuid, timestamptz, text) from public;
grant execute on function durable.refuse_session(uuid, timestamptz, text) to
durable_app, durable_operator, durable_auditor, durable_engine;
